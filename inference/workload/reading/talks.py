"""Sets of conversations: each turn of a person is a request that follows the answer to the one before."""

from collections.abc import Iterable, Mapping
from typing import Any

from inference.workload.reading.items import Item, LineFault, Reading, Workload

Rows = Iterable[tuple[int, Any]]

_PERSON = ("human", "user")
_MODEL = ("gpt", "assistant", "chatgpt", "bing", "bard", "model")


def read_sharegpt(reading: Reading, rows: Rows) -> Workload:
    """ShareGPT: `conversations` of `from` and `value`; what the other side said is the reference."""

    def read(line: int, row: Mapping[str, Any]) -> list[Item]:
        said = row.get("conversations")
        if not isinstance(said, list):
            raise LineFault(line, "must be a list", "conversations")
        pairs: list[tuple[str, Any]] = []
        for number, message in enumerate(said, start=1):
            if not isinstance(message, dict):
                raise LineFault(line, f"message {number} must be an object", "conversations")
            speaker = str(message.get("from", message.get("role", "")))
            pairs.append((speaker, message.get("value", message.get("content"))))
        return _turns(reading, line, row.get("id"), pairs, "conversations")

    return reading.finished("sharegpt", reading.each(rows, read))


def read_pairs(reading: Reading, rows: Rows) -> Workload:
    """evalscope's ShareGPT form: `conversation` of `human` and `assistant`."""

    def read(line: int, row: Mapping[str, Any]) -> list[Item]:
        said = row.get("conversation")
        if not isinstance(said, list) or not all(isinstance(turn, dict) for turn in said):
            raise LineFault(line, "must be a list of objects", "conversation")
        pairs = [
            pair for turn in said for pair in (("human", turn.get("human")), ("gpt", turn.get("assistant")))
        ]
        reading.leave_out(row, ("conversation", "conversation_id", "category"))
        return _turns(reading, line, row.get("conversation_id"), pairs, "conversation")

    return reading.finished("evalscope-sharegpt", reading.each(rows, read))


def read_mt_bench(reading: Reading, rows: Rows) -> Workload:
    """MT-bench: `turns` of a person, and for some a `reference` answer to each."""

    def read(line: int, row: Mapping[str, Any]) -> list[Item]:
        turns, references = row.get("turns"), row.get("reference") or []
        if not isinstance(turns, list) or not isinstance(references, list):
            raise LineFault(line, "must be a list", "turns" if not isinstance(turns, list) else "reference")
        reading.leave_out(row, ("question_id", "category", "turns", "reference"))
        pairs: list[tuple[str, Any]] = []
        for number, turn in enumerate(turns):
            pairs += [("human", turn), ("gpt", references[number] if number < len(references) else None)]
        return _turns(reading, line, row.get("question_id"), pairs, "turns")

    return reading.finished("mt-bench", reading.each(rows, read))


def _turns(reading: Reading, line: int, given: Any, pairs: list[tuple[str, Any]], column: str) -> list[Item]:
    """One item for each text of a person; a system text stands before the first."""
    identity = str(given) if isinstance(given, str | int) and str(given) else f"l{line}"
    identity = reading.redactor.text(identity)
    waiting: list[dict[str, str]] = []
    items: list[Item] = []
    for speaker, text in pairs:
        if speaker in _MODEL:
            if items and isinstance(text, str) and text.strip() and not waiting:
                items[-1] = _answered(items[-1], reading.redactor.text(text))
            continue
        if not isinstance(text, str) or not text.strip():
            raise LineFault(line, f"turn {len(items) + 1} has no text", column)
        if speaker not in (*_PERSON, "system"):
            raise LineFault(line, f"turn {len(items) + 1} is from {speaker!r}, who is unknown here", column)
        role = "system" if speaker == "system" else "user"
        waiting.append({"role": role, "content": reading.redactor.text(text)})
        if role == "user":
            number = len(items) + 1
            items.append(
                Item(
                    line=line,
                    id=f"{identity}#{number}",
                    request={"messages": waiting},
                    follows=f"{identity}#{number - 1}" if items else None,
                )
            )
            waiting = []
    if not items:
        reading.pass_over(line, "nobody asks anything in this conversation")
    return items


def _answered(item: Item, answer: str) -> Item:
    return Item(line=item.line, id=item.id, request=item.request, follows=item.follows, reference=answer)
