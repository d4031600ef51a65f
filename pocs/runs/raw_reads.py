"""Raw records of runs on disk: where they are, the one behind a row, and the column that reads from it."""

from pathlib import Path
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import models
from django.db.models.query_utils import DeferredAttribute
from django.utils.translation import gettext as _

from inference.recording.packing import unpacked_reads
from inference.recording.segments import SUFFIX, BlockReader, Place, SegmentDamaged
from pocs.common.errors import DomainError


class DamagedRecords(DomainError):
    """Raw records that a run once wrote cannot be read, or are not what it wrote."""

    status = 409
    type = "damaged-records"


def records_root() -> Path:
    """The folder of all raw records; `RecordSegment.name` is below it."""
    return Path(settings.MEDIA_ROOT) / "records"


def new_folder_name(run_id: int) -> str:
    """A folder for one execution of a run: never one that was there before."""
    return f"{run_id}-{uuid4().hex[:12]}"


def segment_name(folder: str, number: int) -> str:
    """Name of a segment below the folder of all records."""
    return f"{folder}/{number:06d}{SUFFIX}"


def raw_of(row: Any) -> dict[str, Any]:
    """The raw record behind a row of requests, as it was written; raises DamagedRecords when it is not there.

    The run keeps what it found open: rows that come in the order of the run cost one look each.
    """
    try:
        item = _reader(row.run, row.segment).item(Place(row.segment, row.segment_block, row.segment_item))
    except SegmentDamaged as fault:
        raise _damaged(row.segment) from fault
    if not isinstance(item, dict) or (item.get("index"), item.get("warmup")) != (row.index, row.warmup):
        raise _damaged(row.segment)
    return item


def _damaged(segment: int) -> DamagedRecords:
    return DamagedRecords(
        _("The raw reads of this request cannot be read: segment %(number)s of the run's records is damaged.")
        % {"number": segment}
    )


def _reader(run: Any, number: int) -> BlockReader:
    readers: dict[int, BlockReader] = run.__dict__.setdefault("_segment_readers", {})
    if number not in readers:
        names = dict(run.segments.values_list("number", "name"))
        folder = next(iter(names.values()), "").partition("/")[0]
        readers[number] = BlockReader(records_root() / names.get(number, segment_name(folder, number)))
    return readers[number]


class _ReadsAttribute(DeferredAttribute):
    """Reads of the row itself, or of its segment where the row only says where they are."""

    def __get__(self, instance: Any, cls: Any = None) -> Any:
        value = super().__get__(instance, cls)
        if instance is None or value or instance.segment is None:
            return value
        value = [list(read) for read in unpacked_reads(raw_of(instance)["reads"])]
        instance.__dict__[self.field.attname] = value
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.field.attname] = value


class ReadsField(models.JSONField):
    """`[[ns, tokens], …]`; reading it raises DamagedRecords when the segment cannot be read."""

    descriptor_class = _ReadsAttribute

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        return model_instance.__dict__.get(self.attname, [])  # what the row holds, nothing from the segment

    def deconstruct(self) -> Any:
        name, _path, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs
