"""How projects read request sets and traces: the measuring core behind the port of `pocs.projects`."""

from collections.abc import Mapping, Sequence
from typing import Any

from inference.errors import InputError
from inference.workload.arrivals import parse_shape
from inference.workload.lengths import parse_lengths
from inference.workload.reading import FORMATS, read_workload
from inference.workload.reading.stored import to_text
from inference.workload.report import report
from pocs.common.errors import FieldError, InvalidInput
from pocs.projects.workload_port import ReadFile
from pocs.runs.wording.workloads import in_words


class CoreReader:
    """The port, filled."""

    @property
    def formats(self) -> Sequence[str]:
        return FORMATS

    def shape_needs_rate(self, shape: str) -> bool | None:
        try:
            return not parse_shape(shape).self_timed
        except InputError:
            return None

    def are_lengths(self, lengths: str) -> bool:
        try:
            return parse_lengths(lengths).kind != "trace"
        except InputError:
            return False

    def read(
        self, raw: bytes, name: str, *, format_name: str, columns: Mapping[str, str], skip_faulty: bool
    ) -> ReadFile:
        try:
            workload = read_workload(
                raw, name, format_name=format_name or None, columns=columns, skip_faulty=skip_faulty
            )
        except InputError as fault:
            sentence = in_words(str(fault))
            raise InvalidInput(sentence, [FieldError("/file", "unreadable", sentence)]) from fault
        return ReadFile(to_text(workload), report(workload))

    def words(self, found: Mapping[str, Any]) -> dict[str, Any]:
        return dict(found) | {
            "notes": [in_words(note) for note in found["notes"]],
            "skipped": [skipped | {"why": in_words(skipped["why"])} for skipped in found["skipped"]],
        }
