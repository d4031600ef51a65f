"""The step of common decoder models in C: packed weights, attention in place over the paged cache."""
