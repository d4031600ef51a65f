"""Resources around a measurement: memory, processors, accelerators, and what servers tell of themselves.

A sample is one flat mapping with the keys of `inference.telemetry.keys`; what is not known is absent, never
0. `*_total` only ever grow, as long as the process lives.
"""

from inference.telemetry.gpu import GpuSampler
from inference.telemetry.host import HostSampler
from inference.telemetry.keys import KEYS, source_of
from inference.telemetry.prometheus import Family, family_names, parse

__all__ = [
    "KEYS",
    "Family",
    "GpuSampler",
    "HostSampler",
    "family_names",
    "parse",
    "source_of",
]
