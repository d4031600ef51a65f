"""Benchmarks: the product beside its peers, in one run, on the machine at hand."""
