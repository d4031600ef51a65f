"""`workload`, and `measure --workload`: reports, written request files, faults in one line."""

import json
from pathlib import Path

import pytest

from inference.__main__ import main
from inference.workload.requests_file import read_requests

BURST = "Timestamp,Request tokens,Response tokens\n5,40,3\n6,0,0\n7,50,2\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(BURST, encoding="utf-8")
    return path


def test_a_trace_is_reported_and_becomes_a_request_file(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, found = tmp_path / "requests.jsonl", tmp_path / "report.json"
    assert main(["workload", str(trace), "--out", str(out), "--report", str(found), "--count", "3"]) == 0
    said = capsys.readouterr().out
    assert "burstgpt (UTF-8): 2 trace" in said
    assert "skipped 1 (line 3): no input and no output tokens" in said
    requests = read_requests(out)
    assert [(r.id, r.arrival_s, r.max_tokens, r.ignore_eos) for r in requests] == [
        ("l2", 0.0, 3, True), ("l4", 2.0, 2, True), ("l2~2", 4.0, 3, True),
    ]  # fmt: skip
    assert json.loads(found.read_text())["written"]["rounds"] == 2


def test_conversations_stay_conversations_and_are_redacted(tmp_path: Path) -> None:
    source, out = tmp_path / "talks.jsonl", tmp_path / "requests.jsonl"
    source.write_text(json.dumps({"turns": ["ring 13812345678", "b"]}) + "\n", encoding="utf-8")
    assert main(["workload", str(source), "--out", str(out)]) == 0
    first, second = read_requests(out)
    assert (second.follows, (first.messages or ())[0]["content"]) == (first.id, "ring [phone]")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--format", "azure-llm"], "trace.csv, line 1: column 'TIMESTAMP' is missing"),
        (["--column", "prompt"], "--column must look like prompt=HEADING"),
        (["--count", "0", "--out", "x"], "--count must be at least 1"),
        (["--tokenizer", "nowhere"], "cannot read tokenizer"),
    ],
)
def test_faults_are_one_line_and_exit_2(
    trace: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    assert main(["workload", str(trace), *more]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert said in lines[0]


def test_measure_takes_either_requests_or_a_workload(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ["measure", "--target", "http://127.0.0.1:9/v1", "--model", "m", "--out", str(tmp_path / "out")]
    assert main(base) == 2
    assert main([*base, "--requests", str(trace), "--workload", str(trace)]) == 2
    assert main([*base, "--requests", str(trace), "--skip-faulty"]) == 2
    assert "--skip-faulty is for --workload only" in capsys.readouterr().err
    assert main([*base, "--workload", str(trace), "--arrival", "gamma:2"]) == 2
    assert "--arrival gamma:2 needs --rate" in capsys.readouterr().err
    assert main([*base, "--workload", str(trace)]) == 3
