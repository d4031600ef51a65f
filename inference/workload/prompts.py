"""Prompts of a wanted token length: readable English or Chinese working texts, the same for one seed."""

import random
from collections.abc import Callable, Sequence

from inference.errors import InputError

Tokenize = Callable[[str], Sequence[int] | None]

LANGUAGES = ("en", "zh", "mixed")

_PLACES = {
    "en": (
        "the Rotterdam depot",
        "the north hall",
        "the Suzhou plant",
        "branch office 12",
        "the call centre",
    ),
    "zh": ("苏州工厂", "北区仓库", "客服中心", "十二号分行", "研发中心"),
}
_ACTORS = {
    "en": ("the shift lead", "the night operator", "an auditor", "the supplier", "the maintenance team"),
    "zh": ("值班组长", "夜班操作员", "审计人员", "供应商", "维护小组"),
}
_ACTS = {
    "en": (
        "reported that pump {n} lost pressure for {m} minutes",
        "found {n} orders without a delivery date",
        "replaced the sensor of line {n} after {m} alarms",
        "asked why invoice {n} was paid {m} days late",
        "measured {m} degrees in cabinet {n} and opened a ticket",
        "moved {n} boxes to rack {m} before the count",
    ),
    "zh": (
        "报告{n}号泵的压力下降了{m}分钟",
        "发现有{n}张订单没有交货日期",
        "在{m}次告警之后更换了{n}号产线的传感器",
        "询问{n}号发票为什么晚付了{m}天",
        "在{n}号机柜测得{m}度并提交了工单",
        "在盘点之前把{n}箱货物移到了{m}号货架",
    ),
}
_SENTENCE = {"en": " At {place}, {actor} {act}.", "zh": "在{place}，{actor}{act}。"}
_TASK = {
    "en": "Case {k}: read the log below, name the most urgent entry and say what to do next.\n",
    "zh": "案例{k}：阅读下面的记录，指出最紧急的一条，并说明下一步怎么做。\n",
}
_SHARED = {
    "en": "Work instruction for all cases. Answer briefly, use only facts of the log, and give numbers.",
    "zh": "所有案例的工作说明。回答要简短，只使用记录中的事实，并给出数字。",
}
_FILLERS = {"en": (" and", " so", " on", " it", "."), "zh": ("的", "了", "和", "在", "。")}


def generate_prompts(
    n: int,
    input_tokens: int | Sequence[int],
    *,
    language: str = "en",
    distinct: int | None = None,
    shared_prefix_tokens: int = 0,
    prefixes: int = 1,
    prefix_share: float = 1.0,
    seed: int = 0,
    tokenize: Tokenize | None = None,
) -> list[str]:
    """`n` prompts of `input_tokens` tokens (of all, or of each), taking turns among `distinct` texts.

    The share `prefix_share` of these texts begins with one of `prefixes` common starts of
    `shared_prefix_tokens` tokens; after that they differ at once. A text of two lengths is cut, not another.
    Lengths are exact by `tokenize` (never above; at most a token or two below where a character is several
    tokens) and estimated where it is None. `language` is `en`, `zh` or `mixed` (taking turns).
    Raises InputError for an unknown language or a shared prefix as long as a prompt.
    """
    if language not in LANGUAGES:
        raise InputError(f"language must be one of {', '.join(LANGUAGES)}, not {language!r}")
    lengths = [input_tokens] * n if isinstance(input_tokens, int) else list(input_tokens)
    if shared_prefix_tokens and shared_prefix_tokens >= min(lengths, default=shared_prefix_tokens + 1):
        raise InputError(
            f"the shared prefix ({shared_prefix_tokens} tokens) must be shorter than "
            f"the prompt ({min(lengths)} tokens)"
        )
    count = counter(tokenize)
    starts = _Starts(shared_prefix_tokens, prefixes, prefix_share, seed, count)
    made: dict[tuple[int, int], str] = {}
    texts = []
    for i in range(n):
        k = i % (distinct or n)
        name = ("en", "zh")[k % 2] if language == "mixed" else language
        if (k, lengths[i]) not in made:
            start = starts.of(k, name)
            start += ("\n" if start else "") + _TASK[name].format(k=k + 1 + seed)
            made[k, lengths[i]] = fitted(start, name, lengths[i], _source(seed, k), count)
        texts.append(made[k, lengths[i]])
    return texts


class _Starts:
    """The shared starts of prompts, each made once."""

    def __init__(
        self, tokens: int, prefixes: int, share: float, seed: int, count: Callable[[str], int]
    ) -> None:
        self.tokens, self.prefixes, self.share, self.seed, self.count = tokens, prefixes, share, seed, count
        self._made: dict[tuple[str, int], str] = {}

    def of(self, k: int, language: str) -> str:
        """The start of the k-th text: evenly spread over those that have one, and over the prefixes."""
        before, now = int(k * self.share), int((k + 1) * self.share)
        if not self.tokens or now == before:
            return ""
        key = language, before % self.prefixes
        if key not in self._made:
            number = key[1]
            start = _SHARED[language] if not number else f"{number + 1}. {_SHARED[language]}"
            source = _source(self.seed, "shared" if not number else f"shared-{number}")
            self._made[key] = fitted(start, language, self.tokens, source, self.count)
        return self._made[key]


def estimated_tokens(text: str) -> int:
    """A tokenizer-free guess: four characters of Latin script or one Chinese character a token."""
    wide = sum(ord(char) > 0x2E80 for char in text)
    return wide + (len(text) - wide + 3) // 4


def _source(seed: int, part: object) -> random.Random:
    return random.Random(f"{seed}-{part}")  # noqa: S311 reproducible texts, not a secret


def counter(tokenize: Tokenize | None) -> Callable[[str], int]:
    """Tokens of a text by `tokenize`, or the guess where there is none."""

    def count(text: str) -> int:
        ids = tokenize(text) if tokenize else None
        return estimated_tokens(text) if ids is None else len(ids)

    return count


def fitted(start: str, language: str, tokens: int, source: random.Random, count: Callable[[str], int]) -> str:
    """`start` and as many sentences as fit, cut to the longest text of at most `tokens` tokens."""
    text, have = start, count(start)
    while have < tokens:
        text += "".join(sentence(language, source) for _ in range(2 + (tokens - have) // 10))
        have = count(text)
    low = longest_start(text, tokens, count)
    cut = text[:low]
    if language == "en" and " " in cut and text[low : low + 1].isalnum():
        cut = cut[: cut.rindex(" ")]  # not in the middle of a word
    have = count(cut)
    for filler in _FILLERS[language] * 4:
        if have >= tokens:
            break
        if (longer := count(cut + filler)) <= tokens:
            cut, have = cut + filler, longer
    return cut


def longest_start(text: str, tokens: int, count: Callable[[str], int]) -> int:
    """How many characters of `text` have at most `tokens` tokens; token counts grow with the text."""
    low, high, low_tokens, high_tokens = 0, len(text), 0, count(text)
    if high_tokens <= tokens:
        return high
    by_share = True
    while low < high:
        if by_share:  # where it would be if all parts were alike; every other time the middle, in case not
            place = low + round((high - low) * (tokens - low_tokens) / max(1, high_tokens - low_tokens))
            middle = min(high, max(low + 1, place))
        else:
            middle = (low + high + 1) // 2
        by_share = not by_share
        found = count(text[:middle])
        if found <= tokens:
            low, low_tokens = middle, found
        else:
            high, high_tokens = middle - 1, found
    return low


def sentence(language: str, source: random.Random) -> str:
    """One entry of a log."""
    act = source.choice(_ACTS[language]).format(n=source.randint(2, 97), m=source.randint(2, 59))
    return _SENTENCE[language].format(
        place=source.choice(_PLACES[language]), actor=source.choice(_ACTORS[language]), act=act
    )
