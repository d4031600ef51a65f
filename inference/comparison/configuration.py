"""What differs between two captured configurations, and whether it is only what was declared."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

#: last parts of paths that differ between any two runs and explain nothing
UNINTERESTING = frozenset(
    {
        "started",
        "finished",
        "at",
        "load_1m",
        "pid",
        "hostname_run",
        "name",
        "load_ms",
        "baseline",
        "started_at",
        "memory_available_bytes",
        "load_average",
    }
)
#: what changes with a declared setting by necessity: last parts of paths, by the setting
FOLLOWS: dict[str, frozenset[str]] = {
    "location": frozenset(
        {
            "location",
            "url",
            "server",
            "server_version",
            "path",
            "model",
            "model_digest",
            "architecture",
            "parameters",
            "weights_bytes",
            "kv_bytes_per_token",
            "max_model_tokens",
            "dtype",
            "layers",
            "tokenizer_digest",
            "vocabulary",
            "kv_pool_bytes",
        }
    ),
    "model": frozenset({"model", "model_digest", "max_model_tokens"}),
    "dtype": frozenset(
        {"dtype", "dtype_reason", "weights_bytes", "kv_bytes_per_token", "kernels", "precision"}
    ),
    "kv_blocks": frozenset({"kv_blocks", "kv_pool_bytes"}),
    "block_tokens": frozenset({"block_tokens", "kv_blocks", "kv_pool_bytes"}),
    "speculate": frozenset({"speculate", "draft", "draft_bytes", "draft_digest"}),
}


@dataclass(frozen=True)
class Difference:
    """One setting that is not the same on both sides, by its path."""

    path: str
    baseline: Any
    candidate: Any

    @property
    def last(self) -> str:
        return self.path.rsplit(".", 1)[-1]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def differences(baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> list[Difference]:
    """Every setting that the two do not share, by path."""
    left, right = dict(leaves(baseline)), dict(leaves(candidate))
    return [
        Difference(path, left.get(path), right.get(path))
        for path in sorted(left.keys() | right.keys())
        if left.get(path) != right.get(path) and path.rsplit(".", 1)[-1] not in UNINTERESTING
    ]


def undeclared(found: Sequence[Difference], declared: str) -> list[Difference]:
    """The differences that neither are the declared setting nor follow from it."""
    setting = declared.rsplit(".", 1)[-1]
    allowed = FOLLOWS.get(setting, frozenset()) | {setting}
    return [difference for difference in found if not allowed & set(difference.path.split("."))]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted path, value) of everything that is not a mapping."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value
