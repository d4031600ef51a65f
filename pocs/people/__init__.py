"""Organisations, teams, people and what they may do."""
