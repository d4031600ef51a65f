"""What a kind of scenario is: its code, its procedure, the findings it adds, and what it needs."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from inference.errors import InputError
from inference.kinds.course import Course
from inference.load.generator import LoadResult
from inference.records import RequestRecord

#: `switch`: another model can be put in its place; `memory`: it tells how much memory and cache is in use
Need = Literal["switch", "memory"]


@dataclass(frozen=True, kw_only=True)
class Option:
    """A number of the kind's own that a scenario may set; its unit is the end of its name."""

    name: str
    default: float
    low: float
    high: float
    whole: bool = False


@dataclass(frozen=True, kw_only=True)
class TextOption:
    """A text of the kind's own."""

    name: str
    default: str = ""


@dataclass
class Findings:
    """What a kind adds to the summary.

    `facts` are figures by name, the unit at its end; `tables` are lists of lines by their name, with the same
    names in each line; `statements` say in codes with figures what follows from them.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    statements: list[dict[str, Any]] = field(default_factory=list)

    def say(self, code: str, **figures: Any) -> None:
        self.statements.append({"code": code, "figures": figures})


@dataclass(frozen=True)
class Conducted:
    """What a procedure measured: the load that the run's summary is about, and the kind's findings."""

    result: LoadResult
    findings: Findings


Procedure = Callable[[Course], Awaitable[Conducted]]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of scenario. `name` is the value that a scenario stores, `code` its code in the checklist."""

    name: str
    code: str
    procedure: Procedure
    needs: tuple[Need, ...] = ()
    options: tuple[Option | TextOption, ...] = ()

    def values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The options with defaults filled in; raises InputError naming what is unknown or out of range."""
        known = {option.name: option for option in self.options}
        for name in given:
            if name not in known:
                raise InputError(f"a {self.name} scenario has no option {name!r}")
        return {name: _value(option, given.get(name)) for name, option in known.items()}


def _value(option: Option | TextOption, given: Any) -> Any:
    if given is None:
        return option.default
    if isinstance(option, TextOption):
        return str(given)
    if (
        isinstance(given, bool)
        or not isinstance(given, int | float)
        or not option.low <= given <= option.high
    ):
        raise InputError(f"{option.name} must lie between {option.low:g} and {option.high:g}, not {given!r}")
    return int(given) if option.whole else float(given)


def one_load(judge: Callable[[Course, Sequence[RequestRecord]], Findings]) -> Procedure:
    """The procedure of a kind that is a single load, judged by its records."""

    async def procedure(course: Course) -> Conducted:
        course.enter("load", 1, 1)
        requests, plan = await course.plan()
        result = await course.load(requests, plan)
        return Conducted(result, judge(course, result.records))

    return procedure
