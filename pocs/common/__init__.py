"""The ground of every app: actors, errors, the audit chain, live events."""
