"""The domain of PhaseGate: projects, runs, evidence and reviews, one Django app each."""
