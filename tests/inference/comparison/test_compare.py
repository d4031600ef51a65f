"""Comparisons: what is better, what is worse, what is noise, and what spoils the question."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inference.__main__ import main
from inference.comparison import RunData, compare, gate, of_folder, of_records
from inference.comparison.configuration import differences, undeclared


def run(
    name: str, ttft_ms: float, *, n: int = 200, seed: int = 0, words: str = "same", **summary: Any
) -> RunData:
    """A run whose TTFT scatters by a tenth around `ttft_ms`."""
    random = np.random.default_rng(seed)
    rows = [
        {
            "id": f"r{i}",
            "outcome": "success",
            "ttft_ms": ttft_ms * (1 + 0.1 * random.standard_normal()),
            "tpot_ms": 20.0 + random.standard_normal(),
            "intervals_ms": {"prefill": ttft_ms * 0.9},
            "input_tokens": 50,
            "token_ids": None,
            "text": f"{words} {i}",
        }
        for i in range(n)
    ]
    figures = {
        "attempted": n,
        "succeeded": n,
        "window_s": 20.0,
        "error_rate": 0.0,
        "output_tokens_per_second": 100.0 + random.standard_normal(),
        "output_tokens_per_request": {"p50": 64.0},
        "load": {"open_loop": True},
    }
    return of_records(name, figures | summary, rows)


def three(ttft_ms: float, **fields: Any) -> list[RunData]:
    return [run(f"{ttft_ms}-{i}", ttft_ms, seed=int(ttft_ms) + i, **fields) for i in range(3)]


def row(found: dict[str, Any], metric: str, percentile: str = "") -> dict[str, Any]:
    return next(
        item for item in found["metrics"] if (item["metric"], item["percentile"]) == (metric, percentile)
    )


def test_a_real_change_and_no_change() -> None:
    found = compare(three(200.0), three(150.0))

    ttft = row(found, "ttft_ms", "p50")
    assert (ttft["verdict"], ttft["reason"]) == ("better", "compare_clear")
    assert ttft["interval"][0] < ttft["difference"] < ttft["interval"][1] < 0
    assert ttft["difference"] == pytest.approx(-50.0, abs=5.0)
    assert row(found, "tpot_ms", "p50")["verdict"] == "inconclusive"
    assert "score" not in found


def test_equal_seeds_give_equal_intervals() -> None:
    assert compare(three(200.0), three(190.0), seed=7) == compare(three(200.0), three(190.0), seed=7)


def test_a_difference_within_the_noise_of_repeats_is_none() -> None:
    """The baseline's own runs lie at 150 and 250, so 210 is nothing."""
    found = compare([run("a", 150.0), run("b", 250.0)], [run("c", 208.0), run("d", 212.0)])

    assert row(found, "ttft_ms", "p50")["verdict"] == "inconclusive"


def test_one_run_each_says_nothing_unless_noise_is_assumed() -> None:
    one, other = [run("a", 200.0)], [run("b", 300.0)]

    assert row(compare(one, other), "ttft_ms", "p50")["reason"] == "compare_one_run_each"
    assert row(compare(one, other, assumed_noise=0.05), "ttft_ms", "p50")["verdict"] == "worse"


def test_a_p99_of_few_requests_is_thin() -> None:
    found = compare(three(200.0, n=20), three(400.0, n=20))

    assert row(found, "ttft_ms", "p99")["reason"] == "compare_thin"
    assert row(found, "ttft_ms", "p50")["verdict"] == "worse"


def test_a_closed_loop_that_sent_less_is_no_improvement() -> None:
    """Case 12: answers of 200 tokens instead of 1, so fewer prompts a second."""
    short = {"load": {"open_loop": False}, "output_tokens_per_request": {"p50": 1.0}, "window_s": 10.0}
    long = {"load": {"open_loop": False}, "output_tokens_per_request": {"p50": 200.0}, "window_s": 100.0}

    found = compare(three(200.0, **short), three(120.0, **long))

    assert row(found, "ttft_ms", "p50")["reason"] == "compare_offered_load"
    assert row(found, "ttft_ms", "p50")["verdict"] == "inconclusive"
    assert (found["load"]["baseline_per_second"], found["load"]["candidate_per_second"]) == (20.0, 2.0)
    assert found["load"]["unequal"]
    assert found["load"]["other_work"]


def test_faster_under_more_load_is_faster() -> None:
    slow, quick = {"load": {"open_loop": False}}, {"load": {"open_loop": False}, "window_s": 10.0}

    assert row(compare(three(200.0, **slow), three(120.0, **quick)), "ttft_ms", "p50")["verdict"] == "better"


def test_more_than_the_declared_change_says_nothing() -> None:
    found = compare(three(200.0), three(100.0), confounded=True)

    assert row(found, "ttft_ms", "p50")["reason"] == "compare_confounded"


def test_a_tail_that_pays_for_the_middle() -> None:
    """Q7: the median halves, one request in ten takes three times as long."""
    base, new = three(200.0), three(100.0)
    for data in new:
        values = np.sort(np.concatenate((data.values["ttft_ms"][:180], np.full(20, 900.0))))
        data.values["ttft_ms"] = values  # type: ignore[index]

    tail = next(item for item in compare(base, new)["tail"] if item["metric"] == "ttft_ms")

    assert tail["code"] == "tail_paid"


def test_changed_answers_are_counted_beside_those_of_the_baseline() -> None:
    same = compare(three(200.0), three(200.0))["outputs"]
    other = compare(three(200.0), three(200.0, words="other"))["outputs"]

    assert (same["verdict"], same["share"], same["baseline_share"]) == ("unchanged", 1.0, 1.0)
    assert (other["verdict"], other["identical"]) == ("changed", 0)


def test_the_cost_follows_the_price() -> None:
    found = compare(three(200.0), three(200.0), price_per_hour=3.6)

    assert row(found, "cost_per_1k_output_tokens")["baseline"] == pytest.approx(0.01, rel=0.02)
    assert not [item for item in compare(three(1.0), three(1.0))["metrics"] if item["unit"] == "money"]


def test_only_what_was_declared_may_differ() -> None:
    base = {"target": {"name": "a", "settings": {"prefix_cache": True}}, "environment": {"cpu_cores": 2}}
    new = {"target": {"name": "b", "settings": {"prefix_cache": False}}, "environment": {"cpu_cores": 4}}

    found = differences(base, new)

    assert [item.path for item in found] == ["environment.cpu_cores", "target.settings.prefix_cache"]
    assert [item.path for item in undeclared(found, "prefix_cache")] == ["environment.cpu_cores"]


def test_the_gate_fails_what_is_worse_and_passes_what_surely_is_not() -> None:
    assert gate(compare(three(200.0), three(300.0)))["verdict"] == "fail"
    equal = gate(compare(three(200.0), three(200.0), assumed_noise=0.1))
    assert equal["verdict"] == "pass"
    assert gate(compare([run("a", 200.0)], [run("b", 200.0)]))["verdict"] == "inconclusive"


def folder(path: Path, ttft_ms: float, **summary: Any) -> str:
    path.mkdir()
    data = run(path.name, ttft_ms)
    written = dict(data.summary) | {"schema": "phasegate-run/1", "validity": {"valid": True}} | summary
    (path / "summary.json").write_text(json.dumps(written))
    rows = [
        {"id": f"r{i}", "outcome": "success", "ttft_ms": value}
        for i, value in enumerate(data.values["ttft_ms"])
    ]
    (path / "requests.jsonl").write_text("\n".join(json.dumps(item) for item in rows))
    return str(path)


def test_the_command_and_its_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, same, worse = (
        folder(tmp_path / name, ttft) for name, ttft in (("a", 200), ("same", 201), ("worse", 300))
    )
    broken = folder(tmp_path / "late", 200, validity={"valid": False, "reasons": ["late"]})

    assert main(["compare", a, same, "--gate", "--out", str(tmp_path / "out.json")]) == 0
    assert json.loads((tmp_path / "out.json").read_text())["gate"]["verdict"] == "pass"
    assert main(["compare", a, worse, "--gate"]) == 5
    assert "ttft_ms p50" in capsys.readouterr().out
    assert main(["compare", a, worse]) == 0
    assert main(["compare", a, broken, "--gate"]) == 4
    assert main(["compare", a, str(tmp_path / "nowhere")]) == 2
    assert main(["compare", a, same, "--noise", "7"]) == 2


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (b"\xff\xfe\n", "requests.jsonl, line 1: 'utf-8' codec"),
        (b"{}\n[1]\n", "requests.jsonl, line 2: a request is a JSON object"),
        (b'{"id": "a', "requests.jsonl, line 1: Unterminated string"),
    ],
)
def test_rows_that_are_none_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: bytes, said: str
) -> None:
    (tmp_path / "summary.json").write_text('{"schema": "phasegate-run/1"}')
    (tmp_path / "requests.jsonl").write_bytes(lines)
    assert main(["compare", str(tmp_path), str(tmp_path)]) == 2
    assert said in capsys.readouterr().err


def test_figures_that_are_no_numbers_were_not_observed_and_texts_keep_their_ends_of_line(
    tmp_path: Path,
) -> None:
    (tmp_path / "summary.json").write_text('{"schema": "phasegate-run/1"}')
    row = '{"id": "a", "outcome": "success", "ttft_ms": NaN, "e2e_ms": 5, "text": "x\u2028y\x85z"}\n'
    (tmp_path / "requests.jsonl").write_text(row, encoding="utf-8")
    found = of_folder(tmp_path)
    assert "ttft_ms" not in found.values
    assert found.values["e2e_ms"].tolist() == [5.0]
    assert found.outputs["a"].text == "x\u2028y\x85z"


@pytest.mark.parametrize("more", [["--seed", "-1"], ["--price-per-hour", "nan"], ["--price-per-hour", "-1"]])
def test_options_out_of_range_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    assert main(["compare", str(tmp_path), str(tmp_path), *more]) == 2
    assert f"{more[0]} must be" in capsys.readouterr().err
