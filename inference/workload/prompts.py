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
    input_tokens: int,
    *,
    language: str = "en",
    distinct: int | None = None,
    shared_prefix_tokens: int = 0,
    seed: int = 0,
    tokenize: Tokenize | None = None,
) -> list[str]:
    """`n` prompts of `input_tokens` tokens, taking turns among `distinct` different texts.

    The first `shared_prefix_tokens` tokens are the same in all of them; after that they differ at once.
    Lengths are exact by `tokenize` (never above; at most a token or two below where a character is several
    tokens) and estimated where it is None. `language` is `en`, `zh` or `mixed` (taking turns).
    Raises InputError for an unknown language or a shared prefix as long as the prompt.
    """
    if language not in LANGUAGES:
        raise InputError(f"language must be one of {', '.join(LANGUAGES)}, not {language!r}")
    if shared_prefix_tokens >= input_tokens and shared_prefix_tokens > 0:
        raise InputError(
            f"the shared prefix ({shared_prefix_tokens} tokens) must be shorter than "
            f"the prompt ({input_tokens} tokens)"
        )
    count = _counter(tokenize)
    prefixes = {
        name: _fitted(_SHARED[name], name, shared_prefix_tokens, _source(seed, "shared"), count)
        for name in (("en", "zh") if language == "mixed" else (language,))
        if shared_prefix_tokens
    }
    texts: list[str] = []
    for k in range(min(n, distinct or n)):
        name = ("en", "zh")[k % 2] if language == "mixed" else language
        start = prefixes.get(name, "")
        start += ("\n" if start else "") + _TASK[name].format(k=k + 1 + seed)
        texts.append(_fitted(start, name, input_tokens, _source(seed, k), count))
    return [texts[i % len(texts)] for i in range(n)]


def estimated_tokens(text: str) -> int:
    """A tokenizer-free guess: four characters of Latin script or one Chinese character a token."""
    wide = sum(ord(char) > 0x2E80 for char in text)
    return wide + (len(text) - wide + 3) // 4


def _source(seed: int, part: object) -> random.Random:
    return random.Random(f"{seed}-{part}")  # noqa: S311 reproducible texts, not a secret


def _counter(tokenize: Tokenize | None) -> Callable[[str], int]:
    def count(text: str) -> int:
        ids = tokenize(text) if tokenize else None
        return estimated_tokens(text) if ids is None else len(ids)

    return count


def _fitted(
    start: str, language: str, tokens: int, source: random.Random, count: Callable[[str], int]
) -> str:
    """`start` and as many sentences as fit, cut to the longest text of at most `tokens` tokens."""
    text = start
    while count(text) < tokens:
        short_by = tokens - count(text)
        text += "".join(_sentence(language, source) for _ in range(1 + short_by // 24))
    low, high = 0, len(text)  # the longest prefix that fits; token counts grow with the prefix
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    fitted = text[:low]
    if language == "en" and " " in fitted and text[low : low + 1].isalnum():
        fitted = fitted[: fitted.rindex(" ")]  # not in the middle of a word
    for filler in _FILLERS[language] * 4:
        if count(fitted) < tokens and count(fitted + filler) <= tokens:
            fitted += filler
    return fitted


def _sentence(language: str, source: random.Random) -> str:
    act = source.choice(_ACTS[language]).format(n=source.randint(2, 97), m=source.randint(2, 59))
    return _SENTENCE[language].format(
        place=source.choice(_PLACES[language]), actor=source.choice(_ACTORS[language]), act=act
    )
