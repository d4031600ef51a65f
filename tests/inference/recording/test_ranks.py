"""Exact ranks and gap figures, however many values there are and wherever they lie."""

from typing import Any

import numpy as np
import pytest

from inference.recording import ranks
from inference.recording.reads import ReadStore, StoredReads, gaps_ns
from inference.stats import figures, gap_figures
from tests.inference.test_stats import record


@pytest.fixture(params=[1 << 22, 50])
def held(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(ranks, "HELD", request.param)
    return int(request.param)


@pytest.mark.parametrize(
    "values",
    [
        [7],
        [5] * 1000,
        list(range(2000)),
        [0] * 900 + [10**12] * 100,
        [20_000_000 + i % 37 for i in range(3000)] + [60_000_000_000],
        [(i * 2654435761) % (1 << 40) for i in range(3000)],
    ],
)
def test_ranks_are_those_of_the_sorted_values(values: list[int], held: int) -> None:
    parts = np.array_split(np.array(values, dtype=np.int64), 7)
    whole = ranks.extent(lambda: parts)
    assert (whole.count, whole.total) == (len(values), sum(values))
    wanted = sorted({0, len(values) // 2, len(values) * 99 // 100, len(values) - 1})

    found = ranks.at_ranks(lambda: parts, wanted, whole)

    assert found == {rank: sorted(values)[rank] for rank in wanted}


def test_gaps_on_disk_have_the_figures_of_gaps_in_memory(held: int) -> None:
    store = ReadStore()
    records = [record(i, reads=reads_of(i)) for i in range(40)]
    expected = figures(gap / 1e6 for one in records for gap in gaps_ns(one.reads).tolist())

    for one in records:
        one.reads = store.add(one.reads)  # type: ignore[assignment]
    found = gap_figures(records)

    assert found.pop("mean") == pytest.approx(expected.pop("mean"), rel=1e-12)
    assert found == expected


def test_nothing_has_no_figures() -> None:
    assert gap_figures([]) == figures([])
    assert gap_figures([record(0, reads=[])])["n"] == 0


def test_stored_reads_are_a_sequence_like_any_other() -> None:
    store = ReadStore()
    store.add([(1, 1)])
    reads = [(10, 1), (12, None), (19, 4)]
    stored: Any = store.add(reads)
    assert isinstance(stored, StoredReads)
    assert (len(stored), list(stored), stored[1], stored[-2:]) == (3, reads, (12, None), reads[1:])
    assert (gaps_ns(stored) == gaps_ns(reads)).all()
    assert not store.add([])


def reads_of(i: int) -> list[tuple[int, int | None]]:
    return [(1_000_000_000 * i + k * (20_000_000 + (k * i * 7919) % 1_000_000), 1) for k in range(12)]
