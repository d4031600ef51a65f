"""The stream habits of an endpoint, judged one by one from the records of a few requests.

A habit `misleads` when a client that reads naively would state a wrong figure, `limits` when something
cannot be measured at all, and is `harmless` or `not_seen` otherwise. Each says what PhaseGate does.
"""

from typing import Any, Literal

from inference.phases import TOKENS_PER_READ_UNKNOWN
from inference.records import RequestRecord
from inference.targets.dialects import phases_of_answer

Effect = Literal["misleads", "limits", "harmless", "not_seen"]
Habit = dict[str, Any]

EARLIER_MS = 1.0  # a role chunk in the same read as the first token misleads nobody
EARLY_MS = 5.0  # headers or a role chunk this long before the first token did not come with it

#: code → (name, how it misleads or what it limits, what PhaseGate does about it)
HABITS: dict[str, tuple[str, str, str]] = {
    "answers": (
        "streamed answer",
        "without a complete answer nothing can be measured",
        "success needs a finish reason, no error, some output and an orderly end",
    ),
    "one_piece": (
        "the answer comes in one piece",
        "a client takes its end for the first token: a time to first token as long as the whole answer",
        "the first token is not observed: TTFT and TPOT stay empty, only the end-to-end time is stated",
    ),
    "early_headers": (
        "headers come before the first token",
        "a client that stops its clock at the headers hides queue and prefill",
        "the clock stops at the first read that proves a token; headers are kept beside it",
    ),
    "late_headers": (
        "headers wait for the first token",
        "time until the headers contains the queue, so it is no time of the network",
        "network is never taken from the headers",
    ),
    "role_chunk": (
        "a chunk with a role and no output",
        "counted as a token it makes TTFT too short and adds a gap that nobody saw",
        "it is recorded and never counts",
    ),
    "comments": (
        "comments between the events",
        "a client that counts reads takes keep-alive lines for output",
        "comments are counted apart and are no output",
    ),
    "no_usage": (
        "no usage at the end",
        "a client that trusts usage reports 0 tokens and a throughput of 0",
        "tokens are counted by tokenizer, else by reads, and the source is stated",
    ),
    "running_usage": (
        "usage on every chunk",
        "added up, the running counts give many times the real number of tokens",
        "the last value of one choice counts",
    ),
    "many_tokens_a_read": (
        "several tokens in one read",
        "gaps between reads are no gaps between tokens, and dividing by n − 1 is wrong",
        "TPOT leaves out the tokens of the first read; gaps are stated as gaps between reads",
    ),
    "tokens_per_read_untold": (
        "tokens of a read are not told",
        "whether a read holds one token or four is unknown",
        "TPOT divides by n − 1 and carries a flag",
    ),
    "held_back": (
        "tokens whose text is held back",
        "the first token is sent with empty text (half a character, a possible stop): it is missed",
        "the server's running count proves the token; the first visible output is kept apart (TTFV)",
    ),
    "no_finish_reason": (
        "no finish reason",
        "an answer that was cut off passes for a success",
        "without a finish reason an answer is incomplete",
    ),
    "done_after_failure": (
        "[DONE] after an error or a cut",
        "a client that waits for [DONE] counts a broken answer as a success",
        "[DONE] proves nothing by itself",
    ),
    "reasoning": (
        "reasoning on a channel of its own",
        "a client that reads content only misses the first tokens and their time",
        "any channel proves the first token; the first answer content is kept apart (TTFOT)",
    ),
    "cached_tokens": (
        "cached prompt tokens are not told",
        "the cache hit rate cannot be stated for each request",
        "the rate of the window is read from the server's counters where it has them",
    ),
    "phases": (
        "queue and prefill are not told with an answer",
        "all time before the first token is one part",
        "the means of the window are read from the server's histograms where it has them",
    ),
    "broken_characters": (
        "characters cut in two",
        "half a character becomes a replacement character, and answers differ from what was said",
        "bytes are put together over reads; what is still broken was sent broken",
    ),
    "stop_text": (
        "end at a stop text",
        "a limit of length looks like an end",
        "the finish reason is kept with each request",
    ),
    "one_token": (
        "answer of one token",
        "a time per output token of 0 looks perfect",
        "one token has no time per output token: empty, neither good nor bad",
    ),
    "leaving": (
        "leaving during generation",
        "what a cancelled request has cost is in no figure",
        "its partial tokens are kept, in a population of its own",
    ),
    "not_streamed": (
        "answer without streaming",
        "its duration passes for a first token",
        "no first token is stated for it",
    ),
    "unknown_model": (
        "an unknown model is answered",
        "a wrong model name passes unnoticed, and another model is measured",
        "the check compares with the model list; the name in the answer is kept",
    ),
    "other_model_name": (
        "the answer names another model",
        "what was measured may not be what was asked for",
        "both names are kept with the run",
    ),
    "too_long_prompt": (
        "a prompt that is too long",
        "answered with 200 and nothing, a refusal looks like a fast success",
        "an empty answer is no success, whatever its status",
    ),
}


def habit(code: str, seen: Any, effect: Effect, **figures: Any) -> Habit:
    name, why, handled = HABITS[code]
    return {
        "code": code,
        "name": name,
        "seen": seen,
        "effect": effect,
        "figures": figures,
        "why_it_matters": why,
        "handled": handled,
    }


def stream_habits(record: RequestRecord) -> list[Habit]:
    """The habits that one streamed answer shows."""
    stream = record.server.get("stream", {})
    ended_well = record.outcome == "success"
    return [
        habit("answers", outcome_text(record), "harmless" if ended_well else "limits"),
        *_first_token_habits(record),
        habit("comments", stream.get("comments", 0), "misleads" if stream.get("comments") else "not_seen"),
        *_count_habits(record, stream),
        _finish_habit(record),
        _done_habit(record, stream),
        _if(record.reasoning_text, "reasoning", "yes", "no"),
        _unless(record.cached_tokens is not None, "cached_tokens"),
        _unless(phases_of_answer(record.server).prefill_ms is not None, "phases"),
        characters(record),
    ]


def _first_token_habits(record: RequestRecord) -> list[Habit]:
    first_ns = _ns(record, "first_ns")
    if not record.streamed or (len(record.reads) == 1 and (record.output_tokens or 0) > 1):
        return [habit("one_piece", f"{len(record.reads)} read", "misleads")]
    found = [habit("one_piece", f"no, {len(record.reads)} reads", "not_seen")]
    headers_ns, role_ns = record.detail.get("headers_ns"), record.detail.get("role_ns")
    if first_ns is None or not isinstance(headers_ns, int):
        return found
    lead_ms = (first_ns - headers_ns) / 1e6
    if lead_ms > EARLY_MS:
        found.append(habit("early_headers", f"{lead_ms:.0f} ms before", "misleads", lead_ms=lead_ms))
    else:
        found.append(habit("late_headers", f"{lead_ms:.1f} ms before", "harmless", lead_ms=lead_ms))
    if isinstance(role_ns, int):
        role_ms = (first_ns - role_ns) / 1e6
        effect: Effect = "misleads" if role_ms > EARLIER_MS else "harmless"
        found.append(habit("role_chunk", f"{role_ms:.1f} ms before the first token", effect, lead_ms=role_ms))
    else:
        found.append(habit("role_chunk", "no", "not_seen"))
    visible_ns = record.detail.get("first_visible_ns")
    if isinstance(visible_ns, int) and visible_ns > first_ns:
        later_ms = (visible_ns - first_ns) / 1e6
        found.append(habit("held_back", f"text {later_ms:.1f} ms later", "misleads", later_ms=later_ms))
    elif any(_empty_reads(record)):
        found.append(habit("held_back", "within the answer", "misleads"))
    else:
        found.append(habit("held_back", "no", "not_seen"))
    return found


def _empty_reads(record: RequestRecord) -> list[bool]:
    """One for each read beyond the ones that showed output."""
    shown = record.server.get("stream", {}).get("visible_reads")
    return [] if shown is None else [True] * max(0, len(record.reads) - shown)


def _count_habits(record: RequestRecord, stream: dict[str, Any]) -> list[Habit]:
    found = []
    told = stream.get("usage_at_the_end", 0) > 0 or stream.get("usage_on_chunks", 0) > 0
    source = record.output_tokens_source or "nothing"
    found.append(
        habit(
            "no_usage",
            f"usage sent, tokens by {source}" if told else f"none, tokens by {source}",
            "not_seen" if told else "misleads",
        )
    )
    running = stream.get("running_usages", 0) > 1
    found.append(habit("running_usage", "yes" if running else "no", "misleads" if running else "not_seen"))
    known = [tokens for _, tokens in record.reads if tokens is not None]
    if TOKENS_PER_READ_UNKNOWN in record.flags or (record.reads and not known):
        found.append(habit("tokens_per_read_untold", "not told", "misleads"))
    elif known:
        several = max(known) > 1
        seen = f"{min(known)} to {max(known)}"
        found.append(
            habit("many_tokens_a_read", seen, "misleads" if several else "not_seen", most=max(known))
        )
    return found


def _finish_habit(record: RequestRecord) -> Habit:
    return habit(
        "no_finish_reason", record.finish_reason or "none", "not_seen" if record.finish_reason else "misleads"
    )


def _done_habit(record: RequestRecord, stream: dict[str, Any]) -> Habit:
    done = bool(stream.get("done_marker"))
    broken = record.outcome in ("failed", "incomplete")
    seen = "yes" if done and broken else "sent after a complete answer" if done else "no [DONE]"
    return habit("done_after_failure", seen, "misleads" if done and broken else "not_seen")


def characters(record: RequestRecord) -> Habit:
    broken = "\ufffd" in record.text + record.reasoning_text
    return habit("broken_characters", "yes" if broken else "no", "misleads" if broken else "not_seen")


def model_habits(record: RequestRecord, asked: str) -> list[Habit]:
    named = record.server.get("model")
    other = isinstance(named, str) and bool(named) and named != asked
    return [habit("other_model_name", named or "not told", "misleads" if other else "not_seen")]


def unknown_model(record: RequestRecord) -> Habit:
    answered = record.outcome == "success"
    return habit("unknown_model", outcome_text(record), "misleads" if answered else "not_seen")


def too_long_prompt(record: RequestRecord) -> Habit:
    """Whether a refusal looks like a success: status 200, and yet no answer."""
    disguised = record.status == 200 and record.outcome != "success"
    effect: Effect = "misleads" if disguised or record.outcome == "success" else "not_seen"
    return habit("too_long_prompt", outcome_text(record), effect)


def outcome_text(record: RequestRecord) -> str:
    parts: list[str] = [record.outcome]
    if record.finish_reason:
        parts.append(f"finish reason {record.finish_reason}")
    if record.status is not None and (record.status != 200 or record.outcome != "success"):
        parts.append(f"HTTP {record.status}")
    if record.error:
        parts.append(record.error)
    return ", ".join(parts)


def _if(there: object, code: str, yes: str, no: str) -> Habit:
    return habit(code, yes if there else no, "misleads" if there else "not_seen")


def _unless(told: bool, code: str) -> Habit:
    return habit(code, "told" if told else "not told", "harmless" if told else "limits")


def _ns(record: RequestRecord, name: str) -> int | None:
    value = record.stamps.get(name)
    return value if isinstance(value, int) else None
