"""The diagnosis of a run and of one request: where the time goes, why, and which action fits the goal."""

from inference.diagnosis.advice import Setting
from inference.diagnosis.goals import GOALS, Goal
from inference.diagnosis.requests import diagnose_request
from inference.diagnosis.verdict import diagnose

__all__ = ["GOALS", "Goal", "Setting", "diagnose", "diagnose_request"]
