"""Segments: what was written is read again, a torn end is told from damage, and damage costs one block."""

import random
from pathlib import Path
from typing import Any

import pytest

from inference.recording import segments
from inference.recording.packing import packed_reads, unpacked_reads
from inference.recording.segments import BlockReader, Place, SegmentDamaged, SegmentWriter, read_segment


def write(path: Path, batches: list[list[Any]]) -> list[Place]:
    writer = SegmentWriter(path, 1)
    places = [place for batch in batches for place in writer.append(batch)]
    facts = writer.close()
    assert (facts.items, facts.size_bytes) == (len(places), path.stat().st_size)
    assert facts.sha256 == segments.file_sha256(path)
    return places


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "BLOCK_BYTES", 400)


def batches_of(count: int) -> list[list[dict[str, Any]]]:
    return [[{"n": i, "text": f"answer {i} " * 8}] for i in range(count)]


def test_items_come_back_in_order_and_are_found_by_their_place(tmp_path: Path, small_blocks: None) -> None:
    path = tmp_path / "1.pgrec"
    places = write(path, batches_of(40))

    found = read_segment(path, 1)

    assert [item["n"] for _place, item in found.items] == list(range(40))
    assert [place for place, _item in found.items] == places
    assert found.damage == []
    assert len({place.block for place in places}) > 3
    reader = BlockReader(path)
    for number in (39, 0, 17, 18):
        assert reader.item(places[number])["n"] == number


def test_a_torn_end_costs_only_what_was_not_finished(tmp_path: Path, small_blocks: None) -> None:
    path = tmp_path / "1.pgrec"
    write(path, batches_of(10))
    whole = path.read_bytes()

    for cut in range(len(segments.MAGIC), len(whole), 5):
        path.write_bytes(whole[:cut])
        found = read_segment(path)
        numbers = [item["n"] for _place, item in found.items]
        assert numbers == list(range(len(numbers)))
        assert all(damage.torn for damage in found.damage)
        assert found.good_bytes <= cut
        path.write_bytes(whole[: found.good_bytes])
        assert read_segment(path).damage == []


def test_damage_in_the_middle_is_named_and_later_blocks_are_read(tmp_path: Path, small_blocks: None) -> None:
    path = tmp_path / "1.pgrec"
    places = write(path, batches_of(40))
    content = bytearray(path.read_bytes())
    content[places[8].block + 40] ^= 0xFF
    path.write_bytes(content)

    found = read_segment(path)

    read = {item["n"] for _place, item in found.items}
    assert {0, 39} <= read
    assert len(read) < 40
    [damage] = found.damage
    assert (damage.torn, damage.segment) == (False, "1.pgrec")
    with pytest.raises(SegmentDamaged, match=r"1\.pgrec"):
        BlockReader(path).item(places[8])


def test_no_flipped_bit_goes_unseen(tmp_path: Path, small_blocks: None) -> None:
    path = tmp_path / "1.pgrec"
    write(path, batches_of(12))
    whole = path.read_bytes()
    for at in random.Random(7).sample(range(len(whole)), 120):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << (at % 8)]) + whole[at + 1 :])
        found = read_segment(path)
        assert found.damage
        assert all(item == batches_of(12)[item["n"]][0] for _place, item in found.items)


@pytest.mark.parametrize("content", [b"", b"PG", b"not a segment at all, but a longer file"])
def test_what_is_no_segment_is_said(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.pgrec"
    path.write_bytes(content)

    found = read_segment(path)

    assert found.items == []
    assert len(found.damage) == 1


def test_values_without_a_form_of_their_own_are_kept_as_text(tmp_path: Path) -> None:
    path = tmp_path / "1.pgrec"
    write(path, [[{"n": 0, "huge": 1 << 80, "half": "\ud83d", "inner": [1 << 70, {"a": -(1 << 90)}]}]])

    [(_place, item)] = read_segment(path).items

    assert item == {
        "n": 0,
        "huge": str(1 << 80),
        "half": "\ud83d",
        "inner": [str(1 << 70), {"a": str(-(1 << 90))}],
    }


@pytest.mark.parametrize(
    "reads",
    [[], [(5, 1)], [(5, 1), (5, 1), (9, 1)], [(5, None), (7, 3)], [(5, 2), (4, 0)], [(1, None), (2, None)]],
)
def test_reads_survive_packing(reads: list[tuple[int, int | None]]) -> None:
    assert unpacked_reads(packed_reads(reads)) == reads
