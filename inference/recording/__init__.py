"""Raw records of a run, written as it goes and checked when read, and figures that need not hold them."""
