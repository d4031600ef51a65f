"""The script that checks a GPU, on one that is not there: what it finds equal, and what it does not."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from inference.engine import cuda_graphs, cuda_runner
from inference.engine.attention import Rule
from inference.engine.cuda import CudaAttention
from inference.engine.device import CudaDevice
from inference.errors import TargetUnavailable
from tests.inference.engine.conftest import tiny_config, tiny_model
from tests.inference.engine.fake_cuda import FakeRecorder, fake_device, plain_varlen

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "gpu_check.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gpu_check", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def device(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> CudaDevice:
    """A pretended GPU, and one small model to check on it."""
    found = fake_device()
    monkeypatch.setattr(script, "choose", lambda _: found)
    monkeypatch.setattr(script, "ARCHITECTURES", {"Llama": ("llama", {})})
    monkeypatch.setattr(script, "tiny_model", lambda kind, changes: tiny_model(tiny_config(kind, **changes)))
    monkeypatch.setattr(cuda_graphs, "CudaRecorder", FakeRecorder)
    monkeypatch.setattr(cuda_runner, "find_varlen", lambda _: plain_varlen)
    return found


def test_without_a_gpu_it_says_so(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(name: str) -> Any:
        raise TargetUnavailable(f"{name} is not available: there is none.")

    monkeypatch.setattr(script, "choose", refuse)
    assert script.main([]) == script.NO_GPU == 3
    assert capsys.readouterr().err == "No GPU to check: cuda is not available: there is none.\n"


def test_what_is_equal_is_told_with_what_computed_it(
    script: ModuleType, device: CudaDevice, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--quick", "--only", "equality", "--model", str(tmp_path / "absent")]
    assert script.main(arguments) == 0
    told = capsys.readouterr().out
    row = next(line for line in told.splitlines() if line.startswith("| Llama |"))
    _, _, plain, recorded, narrow, _ = (cell.strip() for cell in row.split("|"))
    assert plain.startswith("equal, ")
    assert plain.endswith(" mixed")
    assert recorded.startswith("equal, ")
    assert recorded.endswith(" replays")
    assert narrow.startswith("differ by ")
    assert "kernel (bfloat16, 8): " in narrow
    assert "| absent | not checked: it is not at" in told
    assert "device_name: Pretended GPU" in told


def test_what_is_not_equal_fails_with_where_and_by_how_much(
    script: ModuleType,
    device: CudaDevice,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = CudaAttention.by_kernel

    def forgetful(self: CudaAttention, batch: Any, query: torch.Tensor, rule: Rule) -> torch.Tensor:
        """Wrong from a context on that no check at load reaches."""
        out = whole(self, batch, query, rule)
        return out * (1.5 if any(span.context > 60 for span in batch.spans) else 1.0)

    monkeypatch.setattr(CudaAttention, "by_kernel", forgetful)
    arguments = ["--quick", "--only", "equality", "--model", str(tmp_path)]
    assert script.main(arguments) == 1
    told = capsys.readouterr().out
    assert "DIFFERS: prompt of " in told
    assert "apart in the model's own logits" in told
    assert told.endswith("NOT EQUAL: see the table above.\n")


def test_an_architecture_that_breaks_does_not_hide_the_others(
    script: ModuleType,
    device: CudaDevice,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(loaded: Any, *_: Any) -> str:
        if loaded.name == "Llama":
            raise TargetUnavailable("it is broken")
        return "equal"

    monkeypatch.setattr(script, "compare", broken)
    monkeypatch.setattr(script, "in_bfloat16", lambda *_: "passed")
    monkeypatch.setattr(script, "ARCHITECTURES", {"Llama": ("llama", {}), "Qwen2": ("qwen2", {})})
    assert not script.equality(device, tmp_path, quick=False)
    told = capsys.readouterr().out
    assert "| Llama | FAILED: it is broken | FAILED: it is broken | passed |" in told
    assert "| Qwen2 | equal | equal | passed |" in told


def test_speed_stands_beside_what_is_off(
    script: ModuleType,
    device: CudaDevice,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(script, "speed_model", lambda: tiny_model(tiny_config()))
    monkeypatch.setattr(
        script, "workloads", lambda *_: {"decode": ([[5, 6, 7]] * 2, 6), "prefill": ([[5] * 20], 1)}
    )
    assert script.main(["--quick", "--only", "speed", "--model", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "Graphs: " in told
    rows = [line for line in told.splitlines() if line.startswith(("| decode |", "| prefill |"))]
    decode, prefill = ([cell.strip() for cell in row.split("|")[2:-1]] for row in rows)
    assert all(cell != "–" for cell in decode)
    assert [cell != "–" for cell in prefill] == [True, True, False, False, True, True]
    assert device.uses_events


def test_the_workloads_are_those_of_the_document(script: ModuleType) -> None:
    found = script.workloads(1000, 1.0)
    assert {name: (len(prompts), out) for name, (prompts, out) in found.items()} == {
        "mixed": (32, 64),
        "decode": (32, 128),
        "prefix": (32, 32),
        "prefill": (8, 1),
        "single": (1, 128),
    }
    assert {len(ids) for ids in found["prefix"][0]} == {544}
    assert all(32 <= len(ids) <= 512 for ids in found["mixed"][0])
