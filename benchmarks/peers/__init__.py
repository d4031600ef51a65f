"""One module a peer, each run in the environment of that peer: `python -P -m benchmarks.peers.NAME`.

Their imports stay apart: a module here may import `benchmarks.peers.protocol`, the standard library and what
its own environment holds.
"""
