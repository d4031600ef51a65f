"""Runs, targets and matrices over REST."""
