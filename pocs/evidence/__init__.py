"""Typed, versioned, hashed evidence."""
