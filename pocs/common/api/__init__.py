"""The REST API of every app: problems, pages, conditional requests, idempotency."""
