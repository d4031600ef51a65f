"""The equality check at every load: the paged path must compute what the plain model computes.

A prompt of random ids goes through the model's own attention in one piece, and through the paged cache in
two chunks and single tokens, over scattered blocks. Logits must agree and, in float32, so must the greedy
tokens. It takes a few forward passes and finds an architecture that does not fit the seam before a user does.
"""

import torch

from inference.engine import attention
from inference.engine.detokenise import Detokeniser, WindowJoiner
from inference.engine.kv import KVPool
from inference.engine.loading import LoadedModel, logits_differ
from inference.engine.runner import Runner
from inference.engine.scheduler import Kind, Step, Work
from inference.engine.sequence import Sequence, block_table
from inference.requests import GenerationRequest

PROMPT_TOKENS = 44
SINGLE_TOKENS = 4
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 8e-2}


class Probe:
    """A prompt of random ids, with the logits that the model computes for it by itself."""

    def __init__(self, loaded: LoadedModel, pool: KVPool) -> None:
        """Computes with the model as it is now; `pool` is what the runners write into."""
        length = min(PROMPT_TOKENS, loaded.max_model_tokens, pool.blocks * pool.block_tokens)
        seeded = torch.Generator().manual_seed(0)
        self._ids = torch.randint(loaded.vocabulary, (length,), generator=seeded).tolist()
        self._plain = _plain_logits(loaded, self._ids)
        self.tolerance = TOLERANCE[loaded.dtype]

    def difference(self, runner: Runner) -> float:
        """How far a runner's logits are off, relative to the largest; infinite when not finite."""
        paged, rows = _paged_logits(runner, self._ids)
        return logits_differ(self._plain[rows], paged)


@torch.inference_mode()
def _plain_logits(loaded: LoadedModel, ids: list[int]) -> torch.Tensor:
    loaded.model.set_attn_implementation("eager")
    try:
        asked = torch.tensor([ids], device=loaded.model.device)
        return loaded.model(input_ids=asked, use_cache=False).logits[0]
    finally:
        loaded.model.set_attn_implementation(attention.NAME)


def _paged_logits(runner: Runner, ids: list[int]) -> tuple[torch.Tensor, list[int]]:
    """Logits of the paged path and the positions they belong to."""
    blocks = -(-len(ids) // runner.pool.block_tokens)
    sequence = Sequence(
        handle=0,
        request=GenerationRequest(id="probe"),
        tokens=[],
        prompt_length=0,
        detokeniser=Detokeniser(WindowJoiner(lambda _: "")),
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
        logits.append(runner.run(Step(kind, [Work(sequence, count)])).clone())
        sequence.num_computed = stop
        rows.append(stop - 1)
    return torch.cat(logits), rows
