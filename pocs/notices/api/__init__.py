"""Notices over REST."""
