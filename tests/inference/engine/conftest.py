"""Tiny random models with a byte tokenizer, and an engine that is stepped by hand and checked when idle."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from inference.engine.engine import Engine
from inference.engine.events import Event
from inference.engine.loading import LoadedModel
from inference.engine.options import EngineOptions
from inference.requests import GenerationRequest

SPECIAL = ["<s>", "</s>", "<|end|>"]
VOCABULARY = len(SPECIAL) + 256
PLAIN = range(len(SPECIAL), VOCABULARY)


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """One token a byte, after three special ones."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*SPECIAL, *letters])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    fast.add_special_tokens({"additional_special_tokens": ["<|end|>"]})
    fast.chat_template = (
        "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}"
    )
    return fast


def tiny_config(kind: str = "llama", **changes: Any) -> Any:
    """A configuration of one architecture small enough to be made and run in milliseconds."""
    from transformers import AutoConfig

    common: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 512,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 1,
        "initializer_range": 0.6,  # wide, so that greedy choices are clear and texts vary
    }
    return AutoConfig.for_model(kind, **(common | changes))


def tiny_model(config: Any, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


def loaded(
    model: Any, tokenizer: Any = None, end_ids: frozenset[int] = frozenset({1}), weights: str = ""
) -> LoadedModel:
    return LoadedModel(
        model=model,
        tokenizer=tokenizer or byte_tokenizer(),
        name="tiny",
        digest="sha256:0",
        architecture=type(model).__name__,
        dtype=torch.float32,
        max_model_tokens=getattr(model.config, "max_position_embeddings", 512),
        vocabulary=VOCABULARY,
        end_ids=end_ids,
        weights=weights,
    )


@dataclass
class Result:
    """What the events of one request add up to."""

    events: list[Event] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        return [event[0] for event in self.events]

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event[0] == kind]

    @property
    def ids(self) -> list[int]:
        return [event[4] for event in self.of("token")]

    @property
    def deltas(self) -> list[str]:
        return [event[5] for event in self.of("token")] + [event[4] for event in self.of("finished")]

    @property
    def text(self) -> str:
        return "".join(self.deltas)

    @property
    def reason(self) -> str | None:
        return next((event[3] for event in self.of("finished")), None)

    @property
    def rejection(self) -> str | None:
        return next((event[3] for event in self.of("rejected")), None)


class Bench:
    """An engine whose steps the test makes, with the events sorted by request."""

    made: ClassVar[list["Bench"]] = []  # those of the running test

    def __init__(self, model: LoadedModel, *, draft: LoadedModel | None = None, **options: Any) -> None:
        self.results: dict[int, Result] = {}
        settings = {"block_tokens": 4, "kv_blocks": 64, "max_batch": 8, "prefill_chunk_tokens": 16}
        chosen = EngineOptions(path="tiny", **(settings | options))
        self.engine = Engine(model, chosen, self._take, draft=draft)
        self._count = 0
        self.made.append(self)

    def _take(self, events: list[Event]) -> None:
        for event in events:
            self.results.setdefault(event[1], Result()).events.append(event)

    def submit(self, ids: Any = None, **fields: Any) -> Result:
        """Hand a request in; `ids` is the prompt. Its id is the handle unless given."""
        self._count += 1
        handle = self._count
        if ids is not None:
            fields["prompt_token_ids"] = tuple(ids)
        fields.setdefault("id", f"r{handle}")
        fields.setdefault("ignore_eos", True)
        result = self.results.setdefault(handle, Result())
        self.engine.submit(handle, GenerationRequest(**fields))
        return result

    def abort(self, result: Result) -> None:
        self.engine.abort(next(handle for handle, other in self.results.items() if other is result))

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            self.engine.step()

    def finish(self, limit: int = 10_000) -> None:
        """Step until idle; then nothing may be left behind."""
        for _ in range(limit):
            if not self.engine.step():
                break
        else:
            raise AssertionError("the engine does not come to rest")
        self.engine.check_idle()
        for result in self.results.values():
            ends = [kind for kind in result.kinds if kind in ("finished", "aborted", "failed", "rejected")]
            assert len(ends) <= 1
            assert result.kinds.count("freed") == (1 if ends and ends != ["rejected"] else 0)

    def run(self, ids: Any = None, **fields: Any) -> Result:
        result = self.submit(ids, **fields)
        self.finish()
        return result


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # matrices of this size only lose by more
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    """Every engine of every test must come to rest, with all its blocks back."""
    Bench.made.clear()
    yield
    for one in Bench.made:
        one.finish()


@pytest.fixture(scope="session")
def llama() -> LoadedModel:
    return loaded(tiny_model(tiny_config()))


@pytest.fixture
def bench(llama: LoadedModel) -> Callable[..., Bench]:
    """Makes engines over the tiny Llama."""

    def make(model: LoadedModel | None = None, **options: Any) -> Bench:
        return Bench(model or llama, **options)

    return make


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny Llama as a folder on disk."""
    folder = tmp_path_factory.mktemp("models") / "tiny-llama"
    tiny_model(tiny_config()).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


def reference(model: Any, ids: list[int], max_new_tokens: int, **settings: Any) -> list[int]:
    """Greedy tokens of transformers' own `generate`, with the model's own attention."""
    from inference.engine.attention import NAME

    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        settings = {"eos_token_id": None, "do_sample": False} | settings
        out = model.generate(
            torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            max_new_tokens=max_new_tokens, **settings,
        )  # fmt: skip
    finally:
        model.set_attn_implementation(before if before == NAME else "eager")
    return out[0, len(ids) :].tolist()
