"""The port through which an upper app reads request sets and traces, and judges shapes and lengths.

Projects keep what was read; how files, arrivals and lengths are understood is the measuring core's to say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class ReadFile:
    """What became of an uploaded file: its kept form, redacted, and the report on it."""

    text: str
    report: dict[str, Any]


class WorkloadReader(Protocol):
    """What the upper app offers."""

    @property
    def formats(self) -> Sequence[str]:
        """Names of the formats that can be read."""

    def shape_needs_rate(self, shape: str) -> bool | None:
        """Whether a shape of load needs a rate beside it; None for a word that is no shape."""

    def are_lengths(self, lengths: str) -> bool:
        """Whether a word is a distribution of lengths."""

    def read(
        self, raw: bytes, name: str, *, format_name: str, columns: Mapping[str, str], skip_faulty: bool
    ) -> ReadFile:
        """The file's kept form; InvalidInput with one sentence that names line and column."""

    def words(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """The report with its sentences in the language of the reader."""


_readers: list[WorkloadReader] = []


def register_reader(reader: WorkloadReader) -> None:
    """Fill the port; called once per process at start-up."""
    _readers[:] = [reader]


def workload_reader() -> WorkloadReader:
    """The reader of this process."""
    return _readers[0]
