"""Memory figures: what the container allows counts, where it is less than the machine."""

from pathlib import Path

import pytest

from inference.engine import memory


def test_a_container_limit_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limit, use = tmp_path / "max", tmp_path / "current"
    limit.write_text(str(64 * 2**20))
    use.write_text(str(24 * 2**20))
    monkeypatch.setattr(memory, "CGROUP_LIMITS", (limit,))
    monkeypatch.setattr(memory, "CGROUP_USES", (use,))
    assert memory.total_bytes() == 64 * 2**20
    assert memory.available_bytes() == 40 * 2**20


@pytest.mark.parametrize("content", ["max", None])
def test_without_a_limit_the_machine_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None
) -> None:
    limit = tmp_path / "max"
    if content is not None:
        limit.write_text(content)
    monkeypatch.setattr(memory, "CGROUP_LIMITS", (limit,))
    monkeypatch.setattr(memory, "CGROUP_USES", (limit,))
    assert memory.total_bytes() >= memory.available_bytes() > 2**20


def test_the_peak_is_never_below_the_present() -> None:
    now, peak = memory.resident_bytes()
    assert peak >= now > 2**20
