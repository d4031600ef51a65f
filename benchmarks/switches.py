"""Each technique against the baseline, one change at a time, by pairs of runs in turn."""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import pairs, tables, workloads
from benchmarks.peers.protocol import Absent, Job, Setup
from benchmarks.worker import ROOT, Worker

LOGS = ROOT / "var" / "benchmarks" / "logs"
TEXT_OUT = 128
# what guessing is good for, and what it is not: an answer that repeats its question, and one that is new
TEXTS = {
    "quoting": (
        "Repeat the following text word for word.\n\n"
        "The engine keeps the keys and values of all tokens in blocks. "
        "A sequence holds the blocks of its own tokens, and sequences that begin alike hold the same blocks. "
        "When memory runs out, the youngest sequence gives its blocks back and is computed again later."
    ),
    "writing": "Write a short story about a lighthouse keeper who finds a letter.",
}
HEAD = ("switch", "work", "baseline tokens/s", "with it", "ratio", "memory MiB", "same first tokens", "load")


@dataclass(frozen=True)
class Switch:
    """Options that differ from the baseline, and the work on which that should show."""

    options: dict[str, Any]
    works: tuple[str, ...]

    @property
    def name(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.options.items())


def cases(draft: Path | None) -> list[Switch]:
    """All switches; a draft model only where there is one."""
    found = [
        Switch({"dtype": "float32"}, ("single", "decode", "prefill")),
        Switch({"dtype": "int8"}, ("single", "decode", "prefill")),
        Switch({"dtype": "int4"}, ("single", "decode", "prefill")),
        Switch({"speculate": "ngram"}, ("quoting", "writing", "decode")),
        Switch({"prefix_cache": False}, ("prefix", "mixed")),
        Switch({"prefill_chunk_tokens": 64}, ("mixed", "prefill")),
        Switch({"prefill_chunk_tokens": 1024}, ("mixed", "prefill")),
        Switch({"max_batch": 8}, ("decode", "mixed")),
        Switch({"max_batch": 16}, ("decode", "mixed")),
        Switch({"block_tokens": 16}, ("decode", "prefix")),
        Switch({"block_tokens": 128}, ("decode", "prefix")),
        Switch({"kernels": "torch"}, ("single", "decode", "prefill")),
    ]
    if draft is not None:
        found.insert(4, Switch({"speculate": f"draft:{draft}"}, ("quoting", "writing", "decode")))
    return found


def build(name: str, model: Path, scale: float) -> workloads.Workload:
    """A workload by name; texts become ids by the model's own chat template."""
    if name not in TEXTS:
        return workloads.build(name, scale)
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(model, local_files_only=True)
    messages = [{"role": "user", "content": TEXTS[name]}]
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"]
    out = max(1, round(TEXT_OUT * scale))
    return workloads.Workload(name, f"{len(ids)} in, {out} out", Job(prompts=[list(ids)], out=out), out)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    baseline = {"dtype": arguments.dtype[0], **dict(arguments.engine)}
    product = start(arguments, baseline, "baseline")
    rows, found = [], []
    try:
        for switch in cases(arguments.draft):
            measured = one(arguments, product, baseline, switch)
            found += measured
            rows += [row(each) for each in measured]
    finally:
        product.close()
    print(f"\nEach switch against the baseline ({baseline}):")
    print(tables.text(HEAD, rows, markdown=arguments.markdown), flush=True)
    return {"baseline": baseline, "switches": found}


def one(
    arguments: argparse.Namespace, product: Worker, baseline: dict[str, Any], switch: Switch
) -> list[dict[str, Any]]:
    works = [name for name in switch.works if name in TEXTS or name in arguments.only]
    if not works or all(baseline.get(name) == value for name, value in switch.options.items()):
        return []
    try:
        other = start(arguments, {**baseline, **switch.options}, "switch")
    except Absent as error:
        print(f"{switch.name}: left out, {error}", flush=True)
        return []
    found = []
    try:
        for name in works:
            work = build(name, arguments.model, arguments.scale)
            pair = pairs.Pair(name, work.text, switch.name, "", "", work.counted)
            pairs.measure(pair, other, product, work.job, arguments.repetitions)
            found.append(pair.as_json() | facts_of(switch, pair, product, other))
            print(f"{switch.name}, {name}: {tables.spread(pair.ratio)}", flush=True)
    except Absent as error:
        print(f"{switch.name}: left out, {error}", flush=True)
    finally:
        other.close()
    return found


def facts_of(switch: Switch, pair: pairs.Pair, product: Worker, other: Worker) -> dict[str, Any]:
    """What a switch changes beside the speed: memory and latencies, without and with it."""
    return {
        "switch": switch.name,
        "options": switch.options,
        "requests": len(pair.product[0].result.first_ids),
        "memory_bytes": (product.resident_bytes, other.resident_bytes),
        "weights_bytes": (product.facts["weights_bytes"], other.facts["weights_bytes"]),
        "latencies": (pairs.latencies(pair.other), pairs.latencies(pair.product)),
    }


def start(arguments: argparse.Namespace, options: dict[str, Any], name: str) -> Worker:
    settings = dict(options)
    setup = Setup(
        model=str(arguments.model), dtype=settings.pop("dtype"), threads=arguments.threads, options=settings
    )
    return Worker("product", sys.executable, setup, LOGS / f"{name}.log")


def row(found: dict[str, Any]) -> tuple[str, ...]:
    """Here the product's side of a pair is the engine with the switch, and the peer is the baseline."""
    plain, other = (value / 2**20 for value in found["memory_bytes"])
    rates = [pairs.Spread(**_named(found[key])) for key in ("peer_tokens_per_s", "tokens_per_s", "ratio")]
    return (
        found["switch"],
        f"{found['workload']}: {found['text']}",
        *map(tables.spread, rates),
        f"{plain:,.0f} → {other:,.0f}",
        f"{found['first_token_agreement']:.0%}",
        f"{found['load'][0]:.1f}–{found['load'][1]:.1f}",
    )


def _named(spread: dict[str, float]) -> dict[str, float]:
    return {"median": spread["median"], "least": spread["min"], "most": spread["max"]}
