"""The first verdict of a run: where the time goes, what that rests on, and which action fits."""

from inference.diagnosis.verdict import diagnose

__all__ = ["diagnose"]
