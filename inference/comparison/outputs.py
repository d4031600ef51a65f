"""Whether the answers changed (M20): equal requests of both sides, beside what repeats differ by."""

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

from inference.comparison.data import RunData
from inference.intervals import share_interval


def compare_outputs(baseline: Sequence[RunData], candidate: Sequence[RunData]) -> dict[str, Any] | None:
    """`{"pairs", "identical", "share", "interval", "baseline_pairs", "baseline_share", "verdict"}`.

    `unchanged`: every pair is identical, or as many as repeats of the baseline are among themselves;
    `changed`: surely fewer than those; else `inconclusive`. None where no request is in both.
    """
    pairs = list(_pairs(product(baseline, candidate)))
    if not pairs:
        return None
    same, of_itself = sum(pairs), list(_pairs(combinations(baseline, 2)))
    share = same / len(pairs)
    own = sum(of_itself) / len(of_itself) if of_itself else None
    interval = share_interval(same, len(pairs))
    if share == 1.0 or (own is not None and share >= own):
        verdict = "unchanged"
    elif own is not None and interval is not None and interval[1] < own:
        verdict = "changed"
    else:
        verdict = "inconclusive"
    return {
        "pairs": len(pairs),
        "identical": same,
        "share": share,
        "interval": list(interval) if interval else None,
        "baseline_pairs": len(of_itself),
        "baseline_share": own,
        "verdict": verdict,
    }


def _pairs(
    runs: "Iterator[tuple[RunData, ...]] | product[tuple[RunData, RunData]] | combinations[Any]",
) -> Any:
    """Whether each request that succeeded in both runs, with as long a prompt, was answered alike."""
    for one, other in runs:
        for key, output in one.outputs.items():
            found = other.outputs.get(key)
            if found is not None and found.input_tokens == output.input_tokens:
                yield output.same_as(found)
