"""People over REST."""
