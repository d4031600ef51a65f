"""Pages of projects."""
