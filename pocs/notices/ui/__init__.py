"""Pages of notices."""
