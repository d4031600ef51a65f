"""The equality check at every load: the paged path must compute what the plain model computes.

A prompt of random ids goes through the model's own attention in one piece, and through the paged cache in
two chunks and single tokens, over scattered blocks. Logits must agree and, in float32, so must the greedy
tokens. It takes a few forward passes and finds an architecture that does not fit the seam before a user does.
"""

from pathlib import Path

import torch

from inference.engine import attention
from inference.engine.detokenise import Detokeniser
from inference.engine.loading import LoadedModel, logits_differ
from inference.engine.runner import ModelRunner
from inference.engine.scheduler import Kind, Step, Work
from inference.engine.sequence import Sequence, block_table
from inference.errors import TargetUnavailable
from inference.requests import GenerationRequest

PROMPT_TOKENS = 44
SINGLE_TOKENS = 4
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 8e-2}


def probe(loaded: LoadedModel, runner: ModelRunner, path: Path) -> None:
    """Raise TargetUnavailable unless the paged path agrees with the plain model."""
    length = min(PROMPT_TOKENS, loaded.max_model_tokens, runner.pool.blocks * runner.pool.block_tokens)
    seeded = torch.Generator().manual_seed(0)
    ids = torch.randint(loaded.vocabulary, (length,), generator=seeded).tolist()
    plain = _plain_logits(loaded, ids)
    paged, rows = _paged_logits(runner, ids)
    difference = logits_differ(plain[rows], paged)
    if difference > TOLERANCE[loaded.dtype]:
        raise TargetUnavailable(
            f"{loaded.architecture} in {path} gives other results on the paged cache than by itself "
            f"(logits differ by {difference:.1%}); it is not supported."
        )


@torch.inference_mode()
def _plain_logits(loaded: LoadedModel, ids: list[int]) -> torch.Tensor:
    loaded.model.set_attn_implementation("eager")
    try:
        asked = torch.tensor([ids], device=loaded.model.device)
        return loaded.model(input_ids=asked, use_cache=False).logits[0]
    finally:
        loaded.model.set_attn_implementation(attention.NAME)


def _paged_logits(runner: ModelRunner, ids: list[int]) -> tuple[torch.Tensor, list[int]]:
    """Logits of the paged path and the positions they belong to."""
    blocks = -(-len(ids) // runner.pool.block_tokens)
    sequence = Sequence(
        handle=0,
        request=GenerationRequest(id="probe"),
        tokens=[],
        prompt_length=0,
        detokeniser=Detokeniser(lambda _: ""),
        generator=None,
        queued_ns=0,
        blocks=block_table(range(runner.pool.blocks - 1, runner.pool.blocks - 1 - blocks, -1)),
    )
    body = max(1, len(ids) - SINGLE_TOKENS)
    stops = [stop for stop in (body // 2, *range(body, len(ids) + 1)) if stop]
    rows, logits = [], []
    for stop in stops:
        count = stop - sequence.num_computed
        sequence.tokens = ids[:stop]
        kind: Kind = "decode" if count == 1 and sequence.num_computed else "prefill"
        logits.append(runner.run(Step(kind, [Work(sequence, count)])))
        sequence.num_computed = stop
        rows.append(stop - 1)
    return torch.cat(logits), rows
