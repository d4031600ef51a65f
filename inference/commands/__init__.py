"""The commands of `python -m inference`, one file each; each adds its own options."""
