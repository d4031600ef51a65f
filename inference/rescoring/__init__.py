"""One run by the definitions of other measuring tools, with the reason for each difference.

`docs/metrics.md` has the definitions and where they stand in the source of each tool.
"""

from inference.rescoring.columns import Columns, collect
from inference.rescoring.definitions import TOOLS, rescore, rescore_all

__all__ = ["TOOLS", "Columns", "collect", "rescore", "rescore_all"]
