"""A model in its process: how one is started, and what is known of it from then on."""

from dataclasses import dataclass
from pathlib import Path

from inference.engine.host import EngineHost
from inference.engine.options import EngineOptions
from inference.targets.base import TargetInfo

# digests of weight files already hashed by this process: path, size and time of change → digest
_digests: dict[tuple[str, int, int], str] = {}


@dataclass(frozen=True)
class Loaded:
    """One engine process with a loaded model."""

    host: EngineHost
    info: TargetInfo
    options: EngineOptions


def new_host(options: EngineOptions, mute_limit_s: float) -> EngineHost:
    """A host that is not started yet; it spares the process the digest of files that were hashed before."""
    key = _weights_key(options.model_path)
    known = _digests.get(key) if key else None
    return EngineHost(options, known_digest=known, mute_limit_s=mute_limit_s)


def start(host: EngineHost) -> Loaded:
    """Load the model; raises TargetUnavailable with the reason, and leaves no process then."""
    key = _weights_key(host.options.model_path)
    try:
        facts = host.start()
    except BaseException:
        host.close()
        raise
    if key is not None:
        _digests[key] = facts["configuration"]["model_digest"]
    info = TargetInfo(
        kind="engine",
        model=facts["model"],
        configuration=facts["configuration"],
        max_model_tokens=facts["max_model_tokens"],
        load_ms=facts["load_ms"],
    )
    return Loaded(host, info, host.options)


def _weights_key(path: Path) -> tuple[str, int, int] | None:
    try:
        files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
        states = [file.stat() for file in files]
    except OSError:
        return None
    newest_ns = max((state.st_mtime_ns for state in states), default=0)
    return str(path.resolve()), sum(state.st_size for state in states), newest_ns
