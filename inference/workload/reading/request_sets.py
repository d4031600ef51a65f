"""Request sets: files with the texts of requests, in the formats of servers and measuring tools."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from inference.errors import InputError
from inference.requests import GenerationRequest
from inference.workload.reading.items import Item, LineFault, Reading, Workload, as_number, length
from inference.workload.reading.traces import moment_s
from inference.workload.requests_file import CONTENT_FIELDS, parse_request

Rows = Iterable[tuple[int, Any]]

#: fields of an OpenAI body that a request here has too
_BODY = (
    "messages", "prompt", "prompt_token_ids", "max_tokens", "min_tokens", "temperature", "top_p", "top_k",
    "min_p", "seed", "stop", "stop_token_ids", "ignore_eos", "presence_penalty", "frequency_penalty",
    "repetition_penalty",
)  # fmt: skip
#: … and those that say how, not what: left out without a word
_HOW = ("model", "stream", "stream_options", "max_completion_tokens", "n", "user")
_GENERATING = ("/v1/chat/completions", "/v1/completions")
_OUTPUT_TOKENS = ("output_tokens", "output_tokens_count", "completion_tokens", "max_tokens")

#: what a CSV column may be called, the first that is there counts
COLUMNS = {
    "prompt": ("prompt", "question", "query", "instruction", "input", "text", "content", "user",
               "提示词", "问题", "输入", "提问", "内容", "用户输入"),
    "system": ("system", "system_prompt", "系统提示词", "系统"),
    "reference": ("response", "answer", "reference", "expected", "output", "completion", "回答", "答案",
                  "参考答案", "输出"),
    "max_tokens": ("max_tokens", "output_tokens", "output_tokens_count", "completion_tokens", "最大输出",
                   "输出长度"),
    "input_tokens": ("prompt_tokens_count", "input_tokens", "prompt_tokens", "输入长度"),
    "id": ("id", "custom_id", "request_id", "编号", "序号"),
    "tenant": ("tenant", "租户"),
    "application": ("application", "app", "应用"),
    "arrival_s": ("arrival_s", "到达时间"),
}  # fmt: skip


def read_own(reading: Reading, rows: Rows) -> Workload:
    """The request file of `python -m inference measure`, one request a line."""

    def read(line: int, row: Mapping[str, Any]) -> list[Item]:
        return [_checked(reading, line, dict(row), arrival_s=row.get("arrival_s"))]

    return reading.finished("phasegate", reading.each(rows, read))


def read_batch(reading: Reading, rows: Rows) -> Workload:
    """OpenAI batch files: chats and completions; other endpoints are passed over and counted."""

    def read(line: int, row: Mapping[str, Any]) -> list[Item]:
        identity, body, url = row.get("custom_id"), row.get("body"), str(row.get("url") or _GENERATING[0])
        if not isinstance(identity, str) or not identity:
            raise LineFault(line, "is missing", "custom_id")
        if not isinstance(body, dict):
            raise LineFault(line, "must be an object", "body")
        if not url.endswith(_GENERATING):
            reading.pass_over(line, f"{url} is no generation request")
            return []
        return [_checked(reading, line, {"id": identity, **_body(reading, line, body)})]

    reading.id_column = "custom_id"
    return reading.finished("openai-batch", reading.each(rows, read))


def read_chats(reading: Reading, rows: Rows) -> Workload:
    """Lines of `{"messages": […]}`; a last message of the assistant is the reference answer."""

    def read(line: int, row: Mapping[str, Any]) -> list[Item]:
        request = {"id": _identity(row, line), **_body(reading, line, row, also=("id", "custom_id"))}
        return [_checked(reading, line, request)]

    return reading.finished("openai-chat", reading.each(rows, read))


def read_timed_bodies(reading: Reading, rows: Rows) -> Workload:
    """evalscope's workload traces: a moment and a body; times are counted from the first."""
    moments: list[float] = []

    def read(line: int, row: Mapping[str, Any]) -> list[Item]:
        if not isinstance(row.get("body"), dict):
            raise LineFault(line, "must be an object", "body")
        if row.get("timestamp") is None:
            raise LineFault(line, "is missing", "timestamp")
        at_s = moment_s(row["timestamp"], "timestamp", line)
        if moments and at_s < moments[-1] and not reading.skip_faulty:
            raise LineFault(line, f"{row['timestamp']} is earlier than the line before", "timestamp")
        moments.append(at_s)
        request = {"id": str(row.get("request_id") or f"l{line}"), **_body(reading, line, row["body"])}
        tokens = length(row, "completion_tokens", line) if row.get("completion_tokens") else None
        return [_checked(reading, line, request, arrival_s=round(at_s - moments[0], 6), output_tokens=tokens)]

    items = reading.each(rows, read)
    items.sort(key=lambda item: item.arrival_s or 0.0)
    return reading.finished("evalscope-trace", items)


def read_prompts(reading: Reading, rows: Rows, *, format_name: str, column: str) -> Workload:
    """Lines with one text each under `column`, such as vLLM's, guidellm's and evalscope's sets."""
    known = (column, "prompt_tokens_count", "system", "response", "output", "id", *_OUTPUT_TOKENS)

    def read(line: int, row: Mapping[str, Any]) -> list[Item]:
        reading.leave_out(row, known)
        tokens = next((length(row, name, line) for name in _OUTPUT_TOKENS if row.get(name)), None)
        asked = length(row, "prompt_tokens_count", line) if row.get("prompt_tokens_count") else None
        request = {"id": _identity(row, line), "messages": _chat(row.get(column), column, row, line)}
        answer = row.get("response") or row.get("output")
        return [_checked(reading, line, request, input_tokens=asked, output_tokens=tokens, reference=answer)]

    return reading.finished(format_name, reading.each(rows, read))


def read_lines(reading: Reading, text: str) -> Workload:
    """A text file with one prompt a line; blank lines are passed over."""

    def read(line: int, row: Mapping[str, Any]) -> list[Item]:
        return [
            _checked(reading, line, {"id": f"l{line}", "messages": _chat(row["prompt"], "prompt", {}, line)})
        ]

    rows = [(i, {"prompt": line.strip()}) for i, line in enumerate(text.split("\n"), start=1) if line.strip()]
    return reading.finished("lines", reading.each(rows, read))


def read_table(reading: Reading, header: Sequence[str], rows: Rows) -> Workload:
    """CSV with a header; `reading.columns` names columns that are not called as usual."""
    found = _columns(reading, header)
    if "prompt" not in found:
        text = (
            f"no column holds the prompt (there are {', '.join(header)}); name it, as in prompt={header[0]}"
        )
        raise InputError(f"{reading.where(1)}: {text}")
    reading.notes.append("columns: " + ", ".join(f"{ours} ← {theirs}" for ours, theirs in found.items()))
    unused = [column for column in header if column not in found.values()]
    if unused:
        reading.notes.append(f"columns not used: {', '.join(unused)}")

    def read(line: int, row: Mapping[str, Any]) -> list[Item]:
        cells = {ours: row[theirs].strip() for ours, theirs in found.items()}
        if not cells["prompt"]:
            raise LineFault(line, "is empty", found["prompt"])
        request: dict[str, Any] = {"id": cells.get("id") or f"l{line}"}
        request["messages"] = _chat(cells["prompt"], found["prompt"], cells, line)
        request |= {name: cells[name] for name in ("tenant", "application") if cells.get(name)}
        tokens = {name: _cell(row, found.get(name), line) for name in ("input_tokens", "max_tokens")}
        arrival_s = None
        if cells.get("arrival_s"):
            arrival_s = as_number(cells["arrival_s"], found["arrival_s"], line)
        return [
            _checked(
                reading,
                line,
                request,
                arrival_s=arrival_s,
                input_tokens=tokens["input_tokens"],
                output_tokens=tokens["max_tokens"],
                reference=cells.get("reference") or None,
            )
        ]

    return reading.finished("csv", reading.each(rows, read))


def _columns(reading: Reading, header: Sequence[str]) -> dict[str, str]:
    """Our name → the file's column; InputError for a named column that is not there."""
    for ours, theirs in reading.columns.items():
        if ours not in COLUMNS:
            raise InputError(f"column {ours!r} is none of {', '.join(COLUMNS)}")
        if theirs not in header:
            raise InputError(
                f"{reading.where(1)}: column {theirs!r} is missing (there are {', '.join(header)})"
            )
    folded = {column.strip().lower().replace(" ", "_"): column for column in reversed(header)}
    found = dict(reading.columns)
    for ours, names in COLUMNS.items():
        match = next(
            (folded[name] for name in names if folded.get(name, "") in header and name in folded), None
        )
        if ours not in found and match is not None and match not in found.values():
            found[ours] = match
    return found


def _cell(row: Mapping[str, Any], column: str | None, line: int) -> int | None:
    return length(row, column, line) if column and row[column].strip() else None


def _body(
    reading: Reading, line: int, body: Mapping[str, Any], *, also: Sequence[str] = ()
) -> dict[str, Any]:
    """The fields of an OpenAI body that are sent; the others are noted."""
    reading.leave_out(body, (*_BODY, *_HOW, *also))
    request = {name: body[name] for name in _BODY if body.get(name) is not None}
    most = body.get("max_completion_tokens")
    if most is not None:
        request["max_tokens"] = most
    prompt = request.get("prompt")
    if isinstance(prompt, list) and all(isinstance(token, int) for token in prompt):
        request["prompt_token_ids"] = request.pop("prompt")
    return request


def _identity(row: Mapping[str, Any], line: int) -> str:
    given = row.get("id", row.get("custom_id"))
    return str(given) if isinstance(given, str | int) and str(given) else f"l{line}"


def _chat(prompt: Any, column: str, row: Mapping[str, Any], line: int) -> list[dict[str, str]]:
    if not isinstance(prompt, str) or not prompt.strip():
        raise LineFault(line, "is missing" if prompt is None else "must be a text that is not empty", column)
    system = row.get("system")
    start = [{"role": "system", "content": system}] if isinstance(system, str) and system.strip() else []
    return [*start, {"role": "user", "content": prompt}]


def _checked(
    reading: Reading,
    line: int,
    request: dict[str, Any],
    *,
    arrival_s: float | None = None,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    reference: Any = None,
) -> Item:
    """The item of a request that could be sent as it is, redacted; LineFault otherwise."""
    messages = request.get("messages")
    if isinstance(messages, list) and len(messages) > 1 and reference is None:
        last = messages[-1]
        if (
            isinstance(last, dict)
            and last.get("role") == "assistant"
            and isinstance(last.get("content"), str)
        ):
            request, reference = {**request, "messages": messages[:-1]}, last["content"]
    clean = reading.redactor.value(request)
    parsed = _parsed(clean, line)
    fields = {name: clean[name] for name in clean if name not in ("id", "arrival_s", "follows", "think_s")}
    if parsed.top_k == 0:
        fields.pop("top_k", None)
    return Item(
        line=line,
        id=parsed.id,
        request=fields,
        input_tokens=input_tokens,
        output_tokens=output_tokens or request.get("max_tokens"),
        arrival_s=arrival_s,
        follows=parsed.follows,
        think_s=parsed.think_s,
        reference=reading.redactor.text(reference) if isinstance(reference, str) and reference else None,
    )


def _parsed(row: dict[str, Any], line: int) -> GenerationRequest:
    try:
        return parse_request(row, where="")
    except InputError as fault:
        raise LineFault(line, str(fault).removeprefix(": ")) from fault


def has_content(row: Mapping[str, Any]) -> bool:
    """Whether a row is a line of our own request file."""
    return "id" in row and any(name in row for name in CONTENT_FIELDS)
