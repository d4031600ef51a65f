"""`measure` on the embedded engine: a tiny random model from a folder, through the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from inference.__main__ import main
from inference.phases import SUMMED


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two layers of Llama over single bytes."""
    folder = tmp_path_factory.mktemp("model")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate(["<s>", "</s>", *letters])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    fast.chat_template = "{% for m in messages %}{{ m['content'] }}\n{% endfor %}"
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        bos_token_id=0,
        eos_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def test_intervals_add_up_and_every_ending_is_its_own_population(model_folder: Path, tmp_path: Path) -> None:
    user = [{"role": "user", "content": "hello there"}]
    rows: list[dict[str, Any]] = [
        {"id": "chat", "messages": user, "max_tokens": 12, "ignore_eos": True},
        {"id": "ids", "prompt_token_ids": [5, 6, 7], "max_tokens": 1, "ignore_eos": True},
        {"id": "text", "prompt": "hello", "max_tokens": 12, "ignore_eos": True},
        {"id": "left", "messages": user, "max_tokens": 200, "ignore_eos": True,
         "cancel": {"phase": "decode", "after_tokens": 3}},
        {"id": "queue", "messages": user, "max_tokens": 20, "cancel": {"phase": "queue"}},
        {"id": "long", "prompt_token_ids": [9] * 400, "max_tokens": 5},
    ]  # fmt: skip
    path = tmp_path / "requests.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    options = ["--dtype", "float32", "--threads", "1", "--kv-blocks", "64", "--concurrency", "3", "--quiet"]
    target = f"engine:{model_folder}"
    code = main(["measure", "--target", target, "--requests", str(path), "--out", str(tmp_path), *options])
    records = {r["id"]: r for r in map(json.loads, (tmp_path / "requests.jsonl").read_text().splitlines())}
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert code == 0
    outcomes = {name: record["outcome"] for name, record in records.items()}
    assert outcomes == {
        "chat": "success",
        "ids": "success",
        "text": "success",
        "left": "cancelled",
        "queue": "cancelled",
        "long": "rejected",
    }
    for name in ("chat", "ids", "text", "left"):
        record = records[name]
        observed = [record["intervals_ms"][part] or 0.0 for part in SUMMED if part != "dispatch_delay"]
        assert sum(observed) == pytest.approx(record["e2e_ms"], abs=1.0)
        assert all(value >= 0 for value in record["intervals_ms"].values() if value is not None)
        assert record["output_tokens"] == len(record["token_ids"]) == sum(n for _, n in record["reads"])
        assert record["stamps"]["freed_ns"] is not None
    assert records["ids"]["tpot_ms"] is None
    assert records["long"]["error"]
    assert summary["queue_wait_ms"]["n"] == summary["prefill_ms"]["n"] == 3
    assert summary["memory"]["weights_bytes"] > 0
    assert summary["target"]["kind"] == "engine"
    assert summary["output_tokens_source"] == ["engine"]
