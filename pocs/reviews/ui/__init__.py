"""Pages of the reviews."""
