"""NVIDIA's DCGM exporter: what the accelerators of a server say on a page of their own."""

from inference.telemetry.prometheus import Families

MIB = 1024 * 1024
#: all names that are read; of several devices the busiest or hottest counts, memory and power add up
NAMES = (
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_XID_ERRORS",
)


def device_sample(families: Families) -> dict[str, float]:
    """The keys of a telemetry sample about accelerators; empty where the page has none of the families."""
    told = {name: family.values() for name in NAMES if (family := families.get(name)) is not None}
    found: dict[str, float] = {}
    if values := told.get("DCGM_FI_DEV_GPU_UTIL"):
        found["gpu_utilisation"] = max(values) / 100
    if used := told.get("DCGM_FI_DEV_FB_USED"):
        found["gpu_memory_used_bytes"] = sum(used) * MIB
        if free := told.get("DCGM_FI_DEV_FB_FREE"):
            found["gpu_memory_bytes"] = (sum(used) + sum(free)) * MIB
    if values := told.get("DCGM_FI_DEV_POWER_USAGE"):
        found["gpu_power_w"] = sum(values)
    if values := told.get("DCGM_FI_DEV_GPU_TEMP"):
        found["gpu_temperature_c"] = max(values)
    if values := told.get("DCGM_FI_DEV_XID_ERRORS"):  # the code of the last error, 0 for none
        found["gpu_xid_error"] = max(values)
    return found
