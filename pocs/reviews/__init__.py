"""Packages, sign-offs, decisions and what follows them."""
