"""Pages of the serving app."""
