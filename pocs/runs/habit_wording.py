"""Stream habits in words: the same as `inference.targets.habits` says, translatable.

A test holds both against each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy

from pocs.common.errors import Text

#: code → (name, how it misleads or what it limits, what PhaseGate does about it)
HABIT_TEXTS: dict[str, tuple[Text, Text, Text]] = {
    "answers": (
        gettext_lazy("streamed answer"),
        gettext_lazy("without a complete answer nothing can be measured"),
        gettext_lazy("success needs a finish reason, no error, some output and an orderly end"),
    ),
    "one_piece": (
        gettext_lazy("the answer comes in one piece"),
        gettext_lazy(
            "a client takes its end for the first token: a time to first token as long as the whole answer"
        ),
        gettext_lazy(
            "the first token is not observed: TTFT and TPOT stay empty, only the end-to-end time is stated"
        ),
    ),
    "early_headers": (
        gettext_lazy("headers come before the first token"),
        gettext_lazy("a client that stops its clock at the headers hides queue and prefill"),
        gettext_lazy("the clock stops at the first read that proves a token; headers are kept beside it"),
    ),
    "late_headers": (
        gettext_lazy("headers wait for the first token"),
        gettext_lazy("time until the headers contains the queue, so it is no time of the network"),
        gettext_lazy("network is never taken from the headers"),
    ),
    "role_chunk": (
        gettext_lazy("a chunk with a role and no output"),
        gettext_lazy("counted as a token it makes TTFT too short and adds a gap that nobody saw"),
        gettext_lazy("it is recorded and never counts"),
    ),
    "comments": (
        gettext_lazy("comments between the events"),
        gettext_lazy("a client that counts reads takes keep-alive lines for output"),
        gettext_lazy("comments are counted apart and are no output"),
    ),
    "no_usage": (
        gettext_lazy("no usage at the end"),
        gettext_lazy("a client that trusts usage reports 0 tokens and a throughput of 0"),
        gettext_lazy("tokens are counted by tokenizer, else by reads, and the source is stated"),
    ),
    "running_usage": (
        gettext_lazy("usage on every chunk"),
        gettext_lazy("added up, the running counts give many times the real number of tokens"),
        gettext_lazy("the last value of one choice counts"),
    ),
    "many_tokens_a_read": (
        gettext_lazy("several tokens in one read"),
        gettext_lazy("gaps between reads are no gaps between tokens, and dividing by n − 1 is wrong"),
        gettext_lazy("TPOT leaves out the tokens of the first read; gaps are stated as gaps between reads"),
    ),
    "tokens_per_read_untold": (
        gettext_lazy("tokens of a read are not told"),
        gettext_lazy("whether a read holds one token or four is unknown"),
        gettext_lazy("TPOT divides by n − 1 and carries a flag"),
    ),
    "held_back": (
        gettext_lazy("tokens whose text is held back"),
        gettext_lazy(
            "the first token is sent with empty text (half a character, a possible stop): it is missed"
        ),
        gettext_lazy(
            "the server's running count proves the token; the first visible output is kept apart (TTFV)"
        ),
    ),
    "no_finish_reason": (
        gettext_lazy("no finish reason"),
        gettext_lazy("an answer that was cut off passes for a success"),
        gettext_lazy("without a finish reason an answer is incomplete"),
    ),
    "done_after_failure": (
        gettext_lazy("[DONE] after an error or a cut"),
        gettext_lazy("a client that waits for [DONE] counts a broken answer as a success"),
        gettext_lazy("[DONE] proves nothing by itself"),
    ),
    "reasoning": (
        gettext_lazy("reasoning on a channel of its own"),
        gettext_lazy("a client that reads content only misses the first tokens and their time"),
        gettext_lazy("any channel proves the first token; the first answer content is kept apart (TTFOT)"),
    ),
    "cached_tokens": (
        gettext_lazy("cached prompt tokens are not told"),
        gettext_lazy("the cache hit rate cannot be stated for each request"),
        gettext_lazy("the rate of the window is read from the server's counters where it has them"),
    ),
    "phases": (
        gettext_lazy("queue and prefill are not told with an answer"),
        gettext_lazy("all time before the first token is one part"),
        gettext_lazy("the means of the window are read from the server's histograms where it has them"),
    ),
    "broken_characters": (
        gettext_lazy("characters cut in two"),
        gettext_lazy(
            "half a character becomes a replacement character, and answers differ from what was said"
        ),
        gettext_lazy("bytes are put together over reads; what is still broken was sent broken"),
    ),
    "stop_text": (
        gettext_lazy("end at a stop text"),
        gettext_lazy("a limit of length looks like an end"),
        gettext_lazy("the finish reason is kept with each request"),
    ),
    "one_token": (
        gettext_lazy("answer of one token"),
        gettext_lazy("a time per output token of 0 looks perfect"),
        gettext_lazy("one token has no time per output token: empty, neither good nor bad"),
    ),
    "leaving": (
        gettext_lazy("leaving during generation"),
        gettext_lazy("what a cancelled request has cost is in no figure"),
        gettext_lazy("its partial tokens are kept, in a population of its own"),
    ),
    "not_streamed": (
        gettext_lazy("answer without streaming"),
        gettext_lazy("its duration passes for a first token"),
        gettext_lazy("no first token is stated for it"),
    ),
    "unknown_model": (
        gettext_lazy("an unknown model is answered"),
        gettext_lazy("a wrong model name passes unnoticed, and another model is measured"),
        gettext_lazy("the check compares with the model list; the name in the answer is kept"),
    ),
    "other_model_name": (
        gettext_lazy("the answer names another model"),
        gettext_lazy("what was measured may not be what was asked for"),
        gettext_lazy("both names are kept with the run"),
    ),
    "too_long_prompt": (
        gettext_lazy("a prompt that is too long"),
        gettext_lazy("answered with 200 and nothing, a refusal looks like a fast success"),
        gettext_lazy("an empty answer is no success, whatever its status"),
    ),
}
EFFECTS: dict[str, Text] = {
    "misleads": gettext_lazy("would mislead a client"),
    "limits": gettext_lazy("limits what can be measured"),
    "harmless": gettext_lazy("harmless"),
    "not_seen": gettext_lazy("not seen"),
}
#: the telling ones first
ORDER = ("misleads", "limits", "harmless", "not_seen")


@dataclass(frozen=True)
class HabitLine:
    """One habit as the page shows it."""

    code: str
    effect: str
    effect_text: str
    name: str
    seen: str
    why: str
    handled: str

    @property
    def telling(self) -> bool:
        """Whether its consequences are worth a sentence."""
        return self.effect in ("misleads", "limits")


def habit_lines(habits: Sequence[Mapping[str, Any]]) -> list[HabitLine]:
    """The habits of a report in the reader's language, the ones that mislead first."""
    lines = []
    for habit in habits:
        name, why, handled = (str(text) for text in _texts(habit))
        effect = habit["effect"]
        effect_text = str(EFFECTS.get(effect, effect))
        lines.append(HabitLine(habit["code"], effect, effect_text, name, str(habit["seen"]), why, handled))
    return sorted(lines, key=lambda line: ORDER.index(line.effect) if line.effect in ORDER else len(ORDER))


def _texts(habit: Mapping[str, Any]) -> tuple[Text, Text, Text]:
    told = (habit["name"], habit["why_it_matters"], habit["handled"])
    return HABIT_TEXTS.get(habit["code"], told)
