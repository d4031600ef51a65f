"""Targets: one protocol, two kinds — the embedded engine and an OpenAI-compatible endpoint."""
