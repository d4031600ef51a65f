"""One token for each row of logits, by the rules of its own request and by nobody else's."""

import torch

from inference.engine.sequence import Sequence

GREEDY_BELOW = 1e-3  # temperatures under this divide logits into infinities; they mean argmax
NUCLEUS_FIRST = 256  # candidates sorted at first for top_p; a full sort only when they do not suffice


def sample(logits: torch.Tensor, sequences: list[Sequence], end_ids: frozenset[int]) -> list[int | None]:
    """Token ids for logits `[n, vocabulary]`, one row a sequence; None where the logits are not finite."""
    best, ids = logits.max(dim=-1)
    finite = torch.isfinite(best).tolist()
    chosen: list[int | None] = list(ids.tolist())
    for row, sequence in enumerate(sequences):
        if not finite[row]:
            chosen[row] = None
        elif not _is_plain_greedy(sequence):
            chosen[row] = _sample_row(logits[row].float(), sequence, end_ids)
    return chosen


def is_greedy(temperature: float) -> bool:
    return temperature < GREEDY_BELOW


def _is_plain_greedy(sequence: Sequence) -> bool:
    request = sequence.request
    return (
        sequence.generator is None
        and sequence.num_output >= request.min_tokens
        and request.repetition_penalty == 1.0
        and request.presence_penalty == 0.0
        and request.frequency_penalty == 0.0
    )


def _sample_row(logits: torch.Tensor, sequence: Sequence, end_ids: frozenset[int]) -> int:
    request = sequence.request
    logits = _penalise(logits, sequence)
    if sequence.num_output < request.min_tokens and end_ids:
        logits = logits.index_fill(0, torch.tensor(sorted(end_ids)), float("-inf"))
    if sequence.generator is None:
        return int(logits.argmax())
    scaled = logits / request.temperature
    candidates: torch.Tensor | None = None
    if 0 < request.top_k < scaled.numel():
        scaled, candidates = scaled.topk(request.top_k)
    probabilities = scaled.softmax(dim=-1)
    if request.top_p < 1.0:
        probabilities, kept = _nucleus(probabilities, request.top_p)
        candidates = kept if candidates is None else candidates[kept]
    # argmax(p / e) with e exponential draws from p (the Gumbel trick), with one draw per candidate
    noise = torch.empty_like(probabilities).exponential_(generator=sequence.generator)
    index = int((probabilities / noise).argmax())
    return index if candidates is None else int(candidates[index])


def _penalise(logits: torch.Tensor, sequence: Sequence) -> torch.Tensor:
    """Repetition as in CTRL (prompt and output), presence and frequency as in the OpenAI API (output)."""
    request = sequence.request
    if request.repetition_penalty != 1.0:
        seen = torch.tensor(sequence.tokens).unique()
        values = logits[seen]
        penalty = request.repetition_penalty
        logits = logits.index_copy(0, seen, torch.where(values < 0, values * penalty, values / penalty))
    if (request.presence_penalty or request.frequency_penalty) and sequence.num_output:
        ids, counts = torch.tensor(sequence.output).unique(return_counts=True)
        change = request.presence_penalty + request.frequency_penalty * counts.to(logits.dtype)
        logits = logits.index_add(0, ids, -change)
    return logits


def _nucleus(probabilities: torch.Tensor, top_p: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The smallest set of most probable candidates whose mass reaches top_p; at least one."""
    count = min(NUCLEUS_FIRST, probabilities.numel())
    values, indices = probabilities.topk(count)
    mass = values.cumsum(0)
    if float(mass[-1]) < top_p and count < probabilities.numel():
        values, indices = probabilities.sort(descending=True)
        mass = values.cumsum(0)
    keep = (mass - values) < top_p
    return values[keep], indices[keep]
