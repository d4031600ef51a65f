"""The definitions of other tools give what the tools themselves wrote, and name why ours differ."""

import json
from pathlib import Path
from typing import Any

import pytest

from inference import __main__ as command_line
from inference.load.session import write_json
from inference.rescoring import TOOLS, collect, rescore, rescore_all
from inference.rescoring.reasons import REASONS
from inference.stats import summarise
from tests.inference.test_stats import MS, failed, record

RESULTS = Path(__file__).parents[2] / "data" / "results"


def told_by(tool: str) -> dict[str, Any]:
    return dict(json.loads((RESULTS / f"{tool}.json").read_text()))


def test_guidellms_own_report_comes_out_again() -> None:
    content = told_by("guidellm-0.8.1")
    records = []
    for number, request in enumerate(content["requests"]):
        sent, first, last, end = (round(request[name] * 1e9) for name in ("start", "first", "last", "end"))
        stamps = {"sent_ns": sent, "first_ns": first, "last_ns": last, "finished_ns": end, "closed_ns": end}
        tokens = request["tokens"]
        reads = [(first, 1), *((last, 1) for _ in range(tokens - 1))]
        records.append(record(number, tokens=tokens, stamps=stamps, reads=reads))

    found = rescore(collect(records, open_loop=False), "guidellm")

    told = content["told"]
    for name, theirs, factor in (
        ("ttft_ms", "time_to_first_token_ms", 1),
        ("tpot_ms", "time_per_output_token_ms", 1),
        ("itl_ms", "inter_token_latency_ms", 1),
        ("e2e_ms", "request_latency", 1000),
    ):
        for key in ("mean", "p50", "p90", "p95", "p99", "max"):
            assert found[name][key] == pytest.approx(told[theirs][key] * factor, abs=2e-3), (name, key)
        assert found[name]["n"] == told[theirs]["n"]
    assert found["output_tokens_per_second"] == pytest.approx(told["output_tokens_per_second"], rel=1e-6)
    assert found["requests_per_second"] == pytest.approx(told["requests_per_second"], rel=1e-6)


def test_aiperfs_own_records_come_out_again() -> None:
    for number, request in enumerate(told_by("aiperf-0.13.0")["requests"]):
        sent = 1_000_000_000
        stamps_ns = [sent + round(request["ttft_ms"] * MS)]
        for gap in request["gaps_ms"]:
            stamps_ns.append(stamps_ns[-1] + round(gap * MS))
        stamps = {"sent_ns": sent, "first_ns": stamps_ns[0], "last_ns": stamps_ns[-1]}
        one = record(number, tokens=request["tokens"], stamps=stamps, reads=[(ns, 1) for ns in stamps_ns])

        found = rescore(collect([one], open_loop=False), "aiperf")

        assert found["tpot_ms"]["mean"] == pytest.approx(request["inter_token_latency_ms"], abs=1e-4)
        assert found["e2e_ms"]["mean"] == pytest.approx(request["request_latency_ms"], abs=1e-4)
        assert found["itl_ms"]["n"] == len(request["gaps_ms"])


def test_evalscopes_tpot_is_the_rest_of_its_latency() -> None:
    summary = told_by("evalscope-1.14.1")["summary"]
    rest_ms = summary["Avg Latency (s)"] * 1000 - summary["Avg TTFT (ms)"]
    assert rest_ms / (summary["Avg Output Tokens"] - 1) == pytest.approx(summary["Avg TPOT (ms)"], abs=0.01)
    window_s = summary["Test Duration (s)"]
    assert summary["Total Requests"] / window_s == pytest.approx(summary["Req Throughput (req/s)"], rel=1e-4)

    one = record(1, tokens=5)  # 100 ms, then one token every 10 ms
    one.stamps["first_ns"], one.stamps["closed_ns"] = one.reads[0][0], one.reads[-1][0] + 8 * MS
    found = rescore(collect([one], open_loop=False), "evalscope")
    assert (found["e2e_ms"]["mean"], found["tpot_ms"]["mean"]) == (148.0, 12.0)


def stamped(number: int, *, role_ms: float | None = None, **changes: Any) -> Any:
    one = record(number, **changes)
    if one.reads:
        one.stamps["first_ns"] = one.reads[0][0]
    one.stamps["closed_ns"] = one.stamps.get("last_ns")
    if role_ms is not None:
        one.detail["role_ns"] = one.stamps["sent_ns"] + round(role_ms * MS)
    return one


def codes(found: dict[str, Any]) -> set[tuple[str, str]]:
    return {(reason["metric"], reason["code"]) for reason in found["reasons"]}


def test_vllms_client_takes_a_role_chunk_for_the_first_token() -> None:
    columns = collect([stamped(1, role_ms=4, ttft_ms=100, tokens=5)], open_loop=False)

    found, own = rescore(columns, "vllm-bench"), rescore(columns, "phasegate")

    assert (found["ttft_ms"]["max"], own["ttft_ms"]["max"]) == (4.0, 100.0)
    assert found["tpot_ms"]["max"] == pytest.approx((140 - 4) / 4)
    assert (found["itl_ms"]["n"], found["itl_ms"]["max"]) == (5, 96.0)
    assert ("ttft_ms", "role_chunk_counts") in codes(found)
    assert own["reasons"] == []


def test_only_differences_that_the_run_shows_are_named() -> None:
    columns = collect([stamped(1), stamped(2)], open_loop=False)
    assert not {code for _, code in codes(rescore(columns, "vllm-bench"))} & {
        "role_chunk_counts",
        "from_sent",
        "unfinished_counts",
        "one_token_first",
    }


def test_unfinished_answers_succeed_elsewhere_and_never_here() -> None:
    columns = collect([stamped(1), stamped(2, outcome="incomplete"), failed(3, "failed")], open_loop=False)
    counted = {tool: rescore(columns, tool)["requests"] for tool in TOOLS}
    assert counted == {"phasegate": 1, "vllm-bench": 2, "guidellm": 1, "aiperf": 1, "evalscope": 2}
    assert ("requests", "unfinished_counts") in codes(rescore(columns, "vllm-bench"))


def test_an_open_loop_counts_from_the_plan_here_alone() -> None:
    late = stamped(1)
    late.stamps["scheduled_ns"] = late.stamps["sent_ns"] - 50 * MS
    columns = collect([late], open_loop=True)
    found = rescore_all(columns)["tools"]
    assert found["phasegate"]["ttft_ms"]["max"] == 150.0
    assert {found[tool]["ttft_ms"]["max"] for tool in TOOLS if tool != "phasegate"} == {100.0}
    assert all(("ttft_ms", "from_sent") in codes(found[tool]) for tool in TOOLS if tool != "phasegate")


def test_several_tokens_in_the_first_read_are_no_time_between_tokens() -> None:
    one = stamped(1, tokens=5)
    one.reads = [(one.reads[0][0], 3), *one.reads[3:]]
    found = rescore_all(collect([one], open_loop=False))["tools"]
    assert found["phasegate"]["tpot_ms"]["max"] == 20.0
    assert found["vllm-bench"]["tpot_ms"]["max"] == 10.0
    assert ("tpot_ms", "one_token_first") in codes(found["aiperf"])


def test_our_own_definition_gives_the_figures_of_the_summary() -> None:
    records = [stamped(i, start_ms=5 * i, ttft_ms=80 + i) for i in range(30)] + [failed(31, "failed")]
    found, summary = rescore(collect(records, open_loop=False), "phasegate"), summarise(records)
    for name in ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms"):
        for key in ("n", "mean", "p50", "p90", "p95", "p99", "max"):
            assert found[name][key] == pytest.approx(summary[name][key]), (name, key)


def test_every_reason_has_a_sentence_and_nothing_observed_breaks_nothing() -> None:
    for records in ([], [failed(1, "rejected")], [stamped(1, tokens=1)], [stamped(1, streamed=False)]):
        for found in rescore_all(collect(records, open_loop=True, excluded=1))["tools"].values():
            assert all(code in REASONS for _metric, code in codes(found))
            json.dumps(found, allow_nan=False)


def test_the_command_prints_figures_with_reasons_and_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.dumps(stamped(i, role_ms=3).as_json()) for i in range(3)]
    (tmp_path / "requests.jsonl").write_text("\n".join(lines) + "\n")
    write_json(tmp_path / "summary.json", {"latency_from": "sent"})

    asked = ["rescore", str(tmp_path), "--as", "vllm-bench", "--out", str(tmp_path / "out")]
    assert command_line.main(asked) == 0
    printed = capsys.readouterr().out
    assert REASONS["role_chunk_counts"] in printed
    assert "ttft_ms    n 3" in printed
    assert json.loads((tmp_path / "out" / "rescored-vllm-bench.json").read_text())["requests"] == 3

    (tmp_path / "requests.jsonl").write_text(lines[0] + "\n{broken\n")
    assert command_line.main(["rescore", str(tmp_path), "--as", "aiperf"]) == 2
    assert "line 2" in capsys.readouterr().err
    assert command_line.main(["rescore", str(tmp_path / "no"), "--as", "aiperf"]) == 2
    assert command_line.main(["rescore", str(tmp_path), "--as", "wrk"]) == 2


def test_bytes_that_are_no_text_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "requests.jsonl").write_bytes(b"\xff\xfe\n")
    assert command_line.main(["rescore", str(tmp_path), "--as", "vllm-bench"]) == 2
    assert "requests.jsonl line 1 is no record of a request" in capsys.readouterr().err
