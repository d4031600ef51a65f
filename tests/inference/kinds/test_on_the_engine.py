"""The kinds that need the embedded engine, on one process with a tiny model."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from inference.targets.embedded import EngineTarget
from tests.inference.engine.conftest import byte_tokenizer, tiny_config, tiny_model

from .conftest import Conduct, codes


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[EngineTarget]:
    folder = tmp_path / "tiny"
    tiny_model(tiny_config()).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    target = EngineTarget(folder, dtype="float32", threads=1, kv_blocks=128)
    yield target
    await target.close()


async def test_interruptions_are_exact_and_a_switch_is_taken_back(
    engine: EngineTarget, run_kind: Conduct
) -> None:
    phases = [{"phase": phase, "every": 4, "after_tokens": 3} for phase in ("queue", "prefill", "decode")]
    conducted, block, _course = await run_kind(
        "interruption", engine, interruptions=phases, output_tokens=64, input_tokens=64
    )
    rows = {row["phase"]: row for row in block["tables"]["phases"]}
    assert all(row["left_there"] == row["asked"] > 0 for row in rows.values()), rows
    left = [one for one in conducted.result.records if one.outcome == "cancelled" and one.output_tokens]
    assert {record.output_tokens for record in left} == {3}, "the engine itself counts, however fast it is"
    gauges = {row["gauge"]: row["state"] for row in block["tables"]["gauges"]}
    assert "held" not in gauges.values(), gauges

    path = engine.options.path
    _conducted, block, _course = await run_kind("model_switch", engine)
    outcomes = {row["step"]: row["outcome"] for row in block["tables"]["switches"]}
    assert outcomes == {"failed_load": "kept", "switch": "switched", "rollback": "switched"}
    assert engine.options.path == path
    assert block["facts"]["same_answer_after_rollback"] is True
    assert {"failed_load_harmless", "switched", "rolled_back_same", "same_model_loaded"} <= set(codes(block))
