"""Reads an OpenAI-style answer, streamed or whole, into a trace: first token, channels, usage, errors."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from inference.records import Trace
from inference.targets.ollama_answer import as_chunk
from inference.targets.sse import EventStream, ServerEvent

DONE = "[DONE]"
#: a finish reason that says the server gave up
FAILED_REASONS = frozenset({"error", "abort"})
MAX_KEPT_EVENTS, MAX_KEPT_CHARS = 8, 2000
HIGHEST_COUNT = 2**53

Tokenize = Callable[[str], Sequence[int] | None]


class AnswerReader:
    """Fed with the body of one answer as it arrives; fills the trace it was given.

    A read counts as carrying tokens when it shows output on any channel (answer, reasoning, tool call) or
    the server's own running count rises. A role-only chunk is stamped and is no token.
    """

    def __init__(self, trace: Trace, *, tokenize: Tokenize | None = None) -> None:
        self.trace = trace
        self.done_seen = False
        self.events = self.events_after_done = 0
        self.choice_texts: dict[int, str] = {}
        self._stream = EventStream()
        self._tokenize = tokenize
        self._finish_reasons: dict[int, str] = {}
        self._running: dict[int, int] = {}  # choice → the server's running count
        self._choice_usage: dict[int, Mapping[str, Any]] = {}
        self._final_usage: list[Mapping[str, Any]] = []
        self._running_usages = self._visible_reads = 0
        self._rest = b""  # the line that is not complete yet

    @property
    def comments(self) -> int:
        return self._stream.comments

    # -- input ----------------------------------------------------------------------------------------

    def feed(self, ns: int, data: bytes) -> None:
        """Bytes of an event stream, read from the socket at `ns`."""
        for event in self._stream.feed(data):
            self.events += 1
            self._event(ns, event)

    def feed_lines(self, ns: int, data: bytes) -> None:
        """Bytes of an answer of one JSON object a line (Ollama's own), read from the socket at `ns`."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if not line.strip():
                continue
            self.events += 1
            try:
                content = parse_json(line)
            except ValueError:
                self._keep(line.decode("utf-8", errors="replace"))
                continue
            if isinstance(content, dict):
                self.done_seen = self.done_seen or content.get("done") is True
                self._object(ns, as_chunk(content, whole=False), whole=False)

    def whole(self, ns: int, body: bytes) -> None:
        """A complete JSON answer: nothing of it was streamed, so no first token was observed."""
        self.trace.streamed = False
        try:
            answer = parse_json(body)
        except ValueError:
            self.trace.error = f"the answer is neither an event stream nor JSON: {_shortened(body)}"
            return
        if not isinstance(answer, dict):
            self.trace.error = f"the answer is no JSON object: {_shortened(body)}"
            return
        native = "message" in answer and "done" in answer
        self._object(ns, as_chunk(answer, whole=True) if native else answer, whole=True)

    def finish(self) -> None:
        """Settle text, finish reason and token counts; call once, when nothing more will come."""
        trace = self.trace
        trace.text = _whole("\n".join(self.choice_texts[index] for index in sorted(self.choice_texts)))
        trace.reasoning_text = _whole(trace.reasoning_text)
        trace.tool_call_text = _whole(trace.tool_call_text)
        if self._finish_reasons:
            trace.finish_reason = self._finish_reasons[min(self._finish_reasons)]
            failed = FAILED_REASONS.intersection(self._finish_reasons.values())
            if failed and trace.error is None:
                trace.error = f"the server ended the answer with finish reason {min(failed)!r}"
        trace.server["stream"] = {
            "events": self.events,
            "comments": self.comments,
            "done_marker": self.done_seen,
            "events_after_done": self.events_after_done,
            "usage_on_chunks": len(self._choice_usage),
            "usage_at_the_end": len(self._final_usage),
            "running_usages": self._running_usages,
            "visible_reads": self._visible_reads,
        }
        self._count_tokens()

    # -- events ---------------------------------------------------------------------------------------

    def _event(self, ns: int, event: ServerEvent) -> None:
        if event.data.strip() == DONE:
            self.done_seen = True
            return
        if self.done_seen:
            self._after_done(event)
            return
        try:
            content = parse_json(event.data)
        except ValueError:
            if event.type == "error":
                self._fail(event.data)
            self._keep(event.data)
            return
        if not isinstance(content, dict):
            self._keep(event.data)
            return
        if event.type == "error":
            self._fail(error_message(content) or event.data)
        self._object(ns, content, whole=False)

    def _after_done(self, event: ServerEvent) -> None:
        """The answer was over: what comes now is kept and is no output of it, but an error is one."""
        self.events_after_done += 1
        self._keep(event.data)
        try:
            content = parse_json(event.data)
        except ValueError:
            return
        message = error_message(content) if isinstance(content, dict) else None
        if message is not None:
            self._fail(message)

    def _object(self, ns: int, content: Mapping[str, Any], *, whole: bool) -> None:
        message = error_message(content)
        if message is not None:
            self._fail(message)
        for name in ("metrics", "timings", "ollama", "system_fingerprint", "model"):
            if content.get(name):
                self.trace.server[name] = content[name]
        choices = [choice for choice in _list(content.get("choices")) if isinstance(choice, dict)]
        usage = content.get("usage")
        had_finished = bool(self._finish_reasons)
        shown = [self._choice(ns, choice, whole=whole) for choice in choices]
        risen = self._usage(usage, choices, had_finished) if isinstance(usage, dict) else None
        visible = any(seen for seen, _ in shown)
        self._visible_reads += visible
        if visible or (risen or 0) > 0:
            ids = [count for _, count in shown if count is not None]
            known = sum(ids) if ids and len(ids) == len(shown) else None
            self.trace.reads.append((ns, risen if risen is not None else known))
        elif not choices and not isinstance(usage, dict) and message is None:
            self._keep(json.dumps(content, ensure_ascii=False))

    def _choice(self, ns: int, choice: Mapping[str, Any], *, whole: bool) -> tuple[bool, int | None]:
        """Take one choice's output; (whether anything is visible, how many token ids it names)."""
        index = _count(choice.get("index")) or 0
        part = choice.get("message") if whole else choice.get("delta")
        delta: Mapping[str, Any] = part if isinstance(part, dict) else {}
        answer = _text(delta.get("content")) + _text(delta.get("refusal")) + _text(choice.get("text"))
        reasoning = _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
        calls = _tool_call_text(delta)
        trace = self.trace
        if answer:
            self.choice_texts[index] = self.choice_texts.get(index, "") + answer
            if trace.first_answer_ns is None:
                trace.first_answer_ns = ns
        trace.reasoning_text += reasoning
        trace.tool_call_text += calls
        visible = bool(answer or reasoning or calls)
        if visible and trace.first_visible_ns is None:
            trace.first_visible_ns = ns
        if not visible and delta.get("role") and trace.role_ns is None:
            trace.role_ns = ns
        if choice.get("finish_reason"):
            reason = choice["finish_reason"]
            self._finish_reasons[index] = str(reason.get("type") if isinstance(reason, dict) else reason)
        ids = choice.get("token_ids")
        return visible, len(ids) if isinstance(ids, list) and ids else None

    def _usage(
        self, usage: Mapping[str, Any], choices: Sequence[Mapping[str, Any]], had_finished: bool
    ) -> int | None:
        """Take one usage object; by how much the server's running count rose, None if it is no running count.

        A usage beside no choice after the finish is the total, not a step of a running count; so is the
        first usage ever when it comes with the finish reason.
        """
        count = _count(usage.get("completion_tokens"))
        index = (_count(choices[0].get("index")) or 0) if choices else 0
        finishing = bool(self._finish_reasons)
        if choices:
            self._choice_usage[index] = usage
            self._running_usages += 1
        else:
            self._final_usage.append(usage)
        if count is None or (had_finished and not choices):
            return None
        before = self._running.get(index)
        if before is None and finishing and self.trace.reads:
            return None
        self._running[index] = count
        return max(0, count - (before or 0))

    def _fail(self, message: str) -> None:
        if self.trace.error is None:
            self.trace.error = message

    def _keep(self, text: str) -> None:
        """Keep what was not understood, so that nothing a server told is lost."""
        kept = self.trace.server.setdefault("other_events", [])
        if len(kept) < MAX_KEPT_EVENTS:
            kept.append(text[:MAX_KEPT_CHARS])

    # -- counts ---------------------------------------------------------------------------------------

    def _count_tokens(self) -> None:
        """Output tokens by the server's usage, else by tokenizer, else by reads; all counts are kept."""
        trace = self.trace
        usage = self._total_usage()
        if usage:
            trace.server["usage"] = usage
            trace.input_tokens = _count(usage.get("prompt_tokens"))
            trace.cached_tokens = _cached_tokens(usage)
        timings = trace.server.get("timings")
        if trace.cached_tokens is None and isinstance(timings, dict):
            trace.cached_tokens = _count(timings.get("cache_n"))
        by_usage = _count(usage.get("completion_tokens")) if usage else None
        if by_usage == 0 and trace.reads:
            by_usage = None  # the server sent output and says it sent none: its count is no count
        output = trace.reasoning_text + trace.text + trace.tool_call_text
        ids = self._tokenize(output) if self._tokenize and output else None
        by_tokenizer = None if ids is None else len(ids)
        by_reads = len(trace.reads) if trace.streamed and trace.reads else None
        trace.server["token_counts"] = {"usage": by_usage, "tokenizer": by_tokenizer, "reads": by_reads}
        for source, count in (("usage", by_usage), ("tokenizer", by_tokenizer), ("reads", by_reads)):
            if count is not None:
                trace.output_tokens = count
                trace.output_tokens_source = source  # type: ignore[assignment]  # the names of TokenSource
                break
        as_many = trace.output_tokens_source == "usage" and trace.output_tokens == by_reads
        if as_many and all(tokens is None for _, tokens in trace.reads):
            trace.reads = [(ns, 1) for ns, _ in trace.reads]  # one token each

    def _total_usage(self) -> dict[str, Any]:
        """Of one choice the last usage sent; one final usage per choice is added up."""
        choices = max(1, len(self._finish_reasons), len(self.choice_texts))
        if self._final_usage:
            if choices > 1 and len(self._final_usage) == choices:
                return _added(self._final_usage)
            return dict(self._final_usage[-1])
        return _added(list(self._choice_usage.values())) if self._choice_usage else {}


def parse_json(text: str | bytes) -> Any:
    """JSON as a server sends it: numbers that are not finite become null; raises ValueError for no JSON."""
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    try:
        return _DECODER.decode(text)
    except RecursionError as fault:
        raise ValueError("nested too deeply") from fault


def _finite(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


_DECODER = json.JSONDecoder(parse_constant=lambda _: None, parse_float=_finite)


def error_message(content: Mapping[str, Any]) -> str | None:
    """The server's error text: `error` as object or text, an object of kind `error`, or only `detail`."""
    error = content.get("error")
    if isinstance(error, dict):
        return str(error.get("message") or error.get("detail") or json.dumps(error, ensure_ascii=False))
    if error:
        return str(error)
    if content.get("object") == "error":
        return str(content.get("message") or "the server reported an error")
    detail = content.get("detail")
    if detail and not content.get("choices"):
        return detail if isinstance(detail, str) else json.dumps(detail, ensure_ascii=False)
    return None


def error_of_body(body: bytes, status: int) -> str:
    """The message of a refused request: the server's own words, else the body, else the status."""
    try:
        content = parse_json(body)
    except ValueError:
        return _shortened(body) or f"HTTP {status}"
    message = error_message(content) if isinstance(content, dict) else None
    if message is None and isinstance(content, dict) and isinstance(content.get("message"), str):
        message = content["message"]
    return message or _shortened(body) or f"HTTP {status}"


def _tool_call_text(delta: Mapping[str, Any]) -> str:
    """Names and arguments of the tool calls in a delta, as they stream."""
    calls = [call.get("function") for call in _list(delta.get("tool_calls")) if isinstance(call, dict)]
    calls.append(delta.get("function_call"))
    functions = [call for call in calls if isinstance(call, dict)]
    return "".join(_text(call.get("name")) + _text(call.get("arguments")) for call in functions)


def _cached_tokens(usage: Mapping[str, Any]) -> int | None:
    details = usage.get("prompt_tokens_details")
    return _count(details.get("cached_tokens")) if isinstance(details, dict) else None


def _added(usages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Usages of several choices of one prompt: completions add up, the prompt counts once."""
    total = dict(usages[-1])
    total["completion_tokens"] = sum(_count(usage.get("completion_tokens")) or 0 for usage in usages)
    return total


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(text: str) -> str:
    """The text with characters put together that JSON escapes sent in halves; a half alone becomes U+FFFD."""
    if not any("\ud800" <= letter <= "\udfff" for letter in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(value: object) -> int | None:
    """A number of things, or None for what is none: servers have been seen to send texts and negatives."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= HIGHEST_COUNT:
        return None
    return int(value)


def _shortened(body: bytes) -> str:
    return " ".join(body[:1200].decode("utf-8", errors="replace").split())[:300]
