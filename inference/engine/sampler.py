"""The next tokens of each sequence, by the rules of its own request and by nobody else's.

Randomness is a function of the request's seed and of the place in its answer, so a seeded answer is the
same alone, beside any neighbours, after a preemption, and with drafts. For each place there is one number
`u`, uniform in [0, 1): the token is where the cumulative distribution, in the order of ids, passes it.

Drafts are checked by choosing the token of each place as if there were no drafts, for as long as the choice
is the draft. With greedy sampling that is plain greedy decoding, token for token. With temperature a draft d
is right with its own probability p(d), and otherwise the token follows p without d: the rule of rejection
sampling for a proposal that is certain. The distribution is the model's whatever was proposed.
"""

from hashlib import blake2b
from struct import Struct
from typing import Any, NamedTuple

import numpy
import torch

from inference.engine.device import Device
from inference.engine.penalties import Scores
from inference.engine.scheduler import Work
from inference.engine.sequence import Sequence
from inference.requests import GenerationRequest

GREEDY_BELOW = 1e-3  # temperatures under this mean argmax
CHUNK = 256  # scores taken together where all of a vocabulary is searched

_PLACE = Struct("<QQ")


class Choice(NamedTuple):
    """What a step gave one sequence: the drafts that were right, and one token more."""

    tokens: list[int]
    logprobs: list[list[tuple[int, float]]] | None  # for each token (see `logprobs`), where asked for


NOTHING = Choice([], None)


def choose(logits: torch.Tensor, work: list[Work], device: Device) -> list[Choice | None]:
    """One choice for each work: no tokens where it leaves some to compute, None where logits are not finite.

    `logits` is `[Σ keep, vocabulary]`, as `ModelRunner.run` returns it for the same work.
    """
    best, rows = _most_probable(logits, device)
    any_broken = bool(best) and min(best) < 0
    choices: list[Choice | None] = []
    row = 0
    for part in work:
        if not part.completes:
            choices.append(NOTHING)
            continue
        sequence, drafts = part.sequence, part.drafts
        own = best[row : row + 1 + len(drafts)]
        if any_broken and min(own) < 0:
            choices.append(None)
        elif not sequence.plain or sequence.num_output < sequence.request.min_tokens:
            choices.append(_choose(rows[row : row + len(own)], sequence, drafts))
        elif drafts:
            right = 0
            while right < len(drafts) and own[right] == drafts[right]:
                right += 1
            choices.append(Choice(own[: right + 1], None))
        else:
            choices.append(Choice(own, None))
        row += len(own)
    return choices


def is_greedy(temperature: float) -> bool:
    return temperature < GREEDY_BELOW


def logprobs(scores: Scores, token_id: int, alternatives: int) -> list[tuple[int, float]]:
    """(id, log probability) of a token, then of the `alternatives` most probable ones, best first.

    By the model's own distribution: before temperature, penalties and cuts.
    """
    top = float(scores.max())
    log_sum = top + float(numpy.log(numpy.exp(scores - top).sum(dtype=numpy.float64)))
    ids = [token_id]
    if alternatives:
        largest = _largest(scores, alternatives)
        ids += largest[numpy.lexsort((largest, -scores[largest]))][:alternatives].tolist()
    return [(one, float(scores[one]) - log_sum) for one in ids]


def uniform(seed: int, place: int) -> float:
    """The number in [0, 1) that belongs to a seed and a place."""
    digest = blake2b(_PLACE.pack(seed % 2**64, place), digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 12) * 2.0**-52


def _most_probable(logits: torch.Tensor, device: Device) -> tuple[list[int], Any]:
    """Argmax of each row (−1 where it is not finite), and the rows themselves for whoever needs more."""
    if logits.device.type != "cpu":
        value, found = logits.max(dim=-1)
        return device.fetch(torch.where(torch.isfinite(value), found, -1)), _DeviceRows(logits, device)
    rows = logits.float().numpy()
    best = rows.argmax(axis=1)  # on CPU ten times faster than torch's; a row with a NaN gives its place
    finite = numpy.isfinite(rows[numpy.arange(len(best)), best])
    return (best if finite.all() else numpy.where(finite, best, -1)).tolist(), rows


class _DeviceRows:
    """Rows of logits that come to the host only when somebody looks at them."""

    def __init__(self, logits: torch.Tensor, device: Device) -> None:
        self._logits, self._device = logits, device

    def __getitem__(self, rows: slice) -> Any:
        return self._device.rows(self._logits[rows]).float().numpy()


def _choose(rows: Any, sequence: Sequence, drafts: tuple[int, ...]) -> Choice:
    """Place after place, until a draft is wrong; `rows` is `[1 + drafts, vocabulary]`."""
    request = sequence.request
    tokens: list[int] = []
    told: list[list[tuple[int, float]]] = []
    for scores, draft in zip(rows, (*drafts, None), strict=True):
        token_id = _choose_one(scores, sequence, sequence.num_output + len(tokens))
        tokens.append(token_id)
        if sequence.history is not None:
            sequence.history.add(token_id)
        if request.logprobs is not None:
            told.append(logprobs(scores, token_id, request.logprobs))
        if token_id != draft:
            break
    return Choice(tokens, None if request.logprobs is None else told)


def _choose_one(scores: Scores, sequence: Sequence, place: int) -> int:
    """The token at one place of the answer."""
    request = sequence.request
    if sequence.history is not None:
        scores = sequence.history.penalise(scores)
    if place < request.min_tokens and sequence.suppressed_ids:
        scores = scores.copy()
        scores[list(sequence.suppressed_ids)] = -numpy.inf
    if sequence.seed is None:
        return int(scores.argmax())
    return _draw(scores, request, uniform(sequence.seed, place))


def _draw(scores: Scores, request: GenerationRequest, u: float) -> int:
    """Temperature, then what top_k, top_p and min_p each leave."""
    top = scores.max()
    ids = _largest(scores, request.top_k) if 0 < request.top_k < len(scores) else None
    if ids is not None:
        scores = scores[ids]
    weights = scores - top
    weights /= numpy.float32(request.temperature)
    numpy.exp(weights, out=weights)  # the most probable weighs 1
    kept = None
    if request.top_p < 1.0:
        kept = _nucleus(weights, request.top_p)
        weights = weights[kept]
    if request.min_p > 0.0:
        weights = numpy.where(weights >= request.min_p, weights, numpy.float32(0))
    index = _pass(weights, u)
    if kept is not None:
        index = int(kept[index])
    return index if ids is None else int(ids[index])


def _largest(scores: Scores, count: int) -> Any:
    """Ids of all scores that are among the `count` largest (those equal to the last included), ascending.

    The maxima of `count` chunks are `count` scores: the smallest of them bounds those that can matter.
    """
    whole = len(scores) // CHUNK * CHUNK
    candidates = None
    if whole // CHUNK > count:
        maxima = scores[:whole].reshape(-1, CHUNK).max(axis=1)
        bound = numpy.partition(maxima, len(maxima) - count)[len(maxima) - count]
        candidates = numpy.flatnonzero(scores >= bound)
        scores = scores[candidates]
    if len(scores) > count:
        last = numpy.partition(scores, len(scores) - count)[len(scores) - count]
        kept = numpy.flatnonzero(scores >= last)
    else:
        kept = numpy.arange(len(scores))
    return kept if candidates is None else candidates[kept]


def _nucleus(weights: Scores, top_p: float) -> Any:
    """Places of the smallest set of largest weights whose share reaches top_p, ascending; at least one.

    What weighs less than the average of the rest 1 − top_p cannot be in it, so that little is sorted.
    """
    wanted = top_p * float(weights.sum(dtype=numpy.float64))
    floor = (1 - top_p) / top_p * wanted / len(weights)
    places = numpy.flatnonzero(weights >= numpy.float32(floor * (1 - 1e-6)))
    candidates = weights[places]
    falling = numpy.sort(candidates)[::-1]  # values only: four times faster than their order
    mass = falling.cumsum(dtype=numpy.float64)
    count = int(numpy.searchsorted(mass, wanted)) + 1
    last = falling[min(count, len(falling)) - 1]
    kept = candidates > last
    equal = numpy.flatnonzero(candidates == last)
    kept[equal[: count - int(kept.sum())]] = True
    return places[kept]


def _pass(weights: Scores, u: float) -> int:
    """The place where the running sum of the weights passes the share `u` of all."""
    start = 0
    chunk = weights
    if len(weights) > 4 * CHUNK:
        starts = numpy.arange(0, len(weights), CHUNK)
        sums = numpy.cumsum(numpy.add.reduceat(weights, starts), dtype=numpy.float64)
        wanted = u * sums[-1]
        number = int(numpy.searchsorted(sums, wanted, side="right"))
        start = number * CHUNK
        wanted -= sums[number - 1] if number else 0.0
        chunk = weights[start : start + CHUNK]
        running = numpy.cumsum(chunk, dtype=numpy.float64)
    else:
        running = numpy.cumsum(weights, dtype=numpy.float64)
        wanted = u * running[-1]
    place = int(numpy.searchsorted(running, wanted, side="right"))
    if place == len(chunk):  # the sums of chunks are rounded: the last that has weight
        place = int(numpy.flatnonzero(chunk)[-1])
    return start + place
