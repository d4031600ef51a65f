"""Targets, runs and their records."""
