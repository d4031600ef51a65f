"""Two sides of one change, metric by metric: better, worse or inconclusive, and no score over all."""

from inference.comparison.compare import compare
from inference.comparison.data import RunData, of_folder, of_records
from inference.comparison.gate import gate

__all__ = ["RunData", "compare", "gate", "of_folder", "of_records"]
