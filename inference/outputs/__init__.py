"""Whether answers satisfy the scenario (M20, Q14): checks of each answer, and a set with exact answers."""

from inference.outputs.evaluation import evaluate, quality_requests

__all__ = ["evaluate", "quality_requests"]
