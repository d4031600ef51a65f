"""`python -m inference`: names, files, exit codes, one-line errors."""

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from inference.__main__ import main

Simulated = str


@pytest.fixture(scope="module")
def simulated() -> Iterator[Simulated]:
    """The URL of a simulator in its own process."""
    options = ["--port", "0", "--ttft-ms", "20", "--itl-ms", "2", "--output-tokens", "6"]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "inference", "simulate", *options], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield process.stdout.readline().split(" on ")[1].strip()
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0


@pytest.fixture
def requests_file(tmp_path: Path) -> Path:
    path = tmp_path / "requests.jsonl"
    rows = [{"id": f"q{i}", "messages": [{"role": "user", "content": "hi"}], "tenant": "t"} for i in range(6)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def measure(url: str, requests_file: Path, out: Path, *more: str) -> list[str]:
    return [
        "measure",
        "--target",
        url,
        "--model",
        "simulated",
        "--requests",
        str(requests_file),
        "--out",
        str(out),
        *more,
    ]


def written(out: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    lines = (out / "requests.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines], json.loads(
        (out / "summary.json").read_text(encoding="utf-8")
    )


def error_of(capsys: pytest.CaptureFixture[str]) -> str:
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("phasegate: ")
    return lines[0]


def test_measure_writes_the_contract_s_files(
    simulated: Simulated, requests_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new" / "out"
    code = main(measure(simulated, requests_file, out, "--concurrency", "2", "--warmup", "2", "--quiet"))
    assert code == 0
    rows, summary = written(out)
    assert [row["id"] for row in rows] == [f"q{i}" for i in range(6)]
    fields = (
        "id outcome finish_reason error text reasoning_text token_ids input_tokens cached_tokens "
        "output_tokens output_tokens_source ttft_ms ttfv_ms ttfot_ms tpot_ms e2e_ms max_gap_ms "
        "stamps intervals_ms reads"
    )
    assert set(fields.split()) <= set(rows[0])
    assert (rows[0]["output_tokens"], rows[0]["tenant"]) == (6, "t")
    assert summary["schema"] == "phasegate-run/1"
    assert (summary["requests"]["success"], summary["warmup_requests"]) == (6, 2)
    assert summary["load"]["concurrency"] == 2
    assert summary["environment"]["cpu_threads"] >= 1
    assert len(summary["configuration_digest"]) == 64
    assert len((out / "warmup.jsonl").read_text().splitlines()) == 2


def test_progress_and_a_short_report_unless_quiet(
    simulated: Simulated, requests_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limit = ["--limit", "ttft_ms:p95:5000"]
    assert main(measure(simulated, requests_file, tmp_path / "a", "--rate", "200", *limit)) == 0
    shown = capsys.readouterr()
    assert "requests: success 6; latencies from scheduled" in shown.out
    assert "opening" in shown.err
    assert written(tmp_path / "a")[1]["limits"][0]["holds"] is True
    assert main(measure(simulated, requests_file, tmp_path / "b", "--quiet")) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--concurrency", "0"], "concurrency must be at least 1"),
        (["--concurrency", "x"], "argument --concurrency: invalid int value: 'x'"),
        (["--rate", "-1"], "rate must be above 0"),
        (["--arrival", "poisson"], "--arrival poisson needs --rate"),
        (["--rate", "1", "--arrival", "sometimes"], "arrival must be constant, poisson, gamma:SHAPE, "),
        (["--timeout", "0"], "timeout must be above 0"),
        (["--dtype", "float32"], "--dtype is for engine targets only"),
        (["--device", "cpu"], "--device is for engine targets only"),
        (["--api-key-env", "NO_SUCH_VARIABLE_HERE"], "NO_SUCH_VARIABLE_HERE"),
        (["--limit", "fast"], "--limit must look like"),
        (["--limit", "speed_ms:p95:5"], "no metric is named 'speed_ms'; there are ttft_ms, "),
        (["--retry-throttled", "-1"], "--retry-throttled must be 0 or more"),
        (["--tokenizer", "/no/such/folder"], "cannot read tokenizer"),
        (["--nonsense"], "unrecognized arguments"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_2(
    requests_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    assert main(measure("http://127.0.0.1:9/v1", requests_file, tmp_path / "out", *more)) == 2
    assert said in error_of(capsys)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (["ftp://host/v1"], "must be engine:PATH or http"),
        (["http://", "--model", "m"], "must look like http://host:port/v1"),
        (["http://127.0.0.1:9/v1"], "needs --model NAME"),
        (["http://a..b/v1", "--model", "m"], "'http://a..b/v1' is no URL: its host is no name"),
        (["http://exa mple/v1", "--model", "m"], "is no URL: its host is no name"),
        (["http://127.0.0.1:0/v1", "--model", "m"], "is no URL: its port is 0"),
        (["engine:/x", "--model", "m"], "--model is for http targets only"),
        (["engine:/x", "--speculate", "lookup"], "speculate must be ngram or draft:PATH"),
        (["engine:/x", "--max-batch", "0"], "max-batch must be a whole number of at least 1"),
    ],
)
def test_bad_targets_are_one_line_and_exit_2(
    requests_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], target: list[str], said: str
) -> None:
    files = ["--requests", str(requests_file), "--out", str(tmp_path / "o")]
    assert main(["measure", *files, "--target", *target]) == 2
    assert said in error_of(capsys)


def test_a_bad_line_is_named_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"id": "a", "prompt": "x"}\n{"id": "b", "prompt": "x", "max_tokens": 0}\n')
    assert main(measure("http://127.0.0.1:9/v1", path, tmp_path / "out")) == 2
    assert "line 2: max_tokens must be from 1" in error_of(capsys)
    assert not (tmp_path / "out").exists()


def test_an_output_folder_that_cannot_be_is_exit_2(
    requests_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(measure("http://127.0.0.1:9/v1", requests_file, requests_file / "out")) == 2
    assert "cannot write to" in error_of(capsys)


def test_an_unreachable_target_is_exit_3(
    requests_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers there
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        assert main(measure(url, requests_file, tmp_path / "out", "--quiet")) == 3
    assert f"cannot reach {url}" in error_of(capsys)


def test_a_model_folder_that_is_none_is_exit_3(
    requests_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = f"engine:{tmp_path / 'no-model'}"
    arguments = [
        "measure",
        "--target",
        target,
        "--requests",
        str(requests_file),
        "--out",
        str(tmp_path),
        "--quiet",
    ]
    assert main(arguments) == 3
    assert "no-model" in error_of(capsys)


class _Refusing(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = b'{"error": "out of memory"}'
        self.send_response(500)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep standard error for the command."""


def test_failed_requests_are_measured_too(requests_file: Path, tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    code = main(measure(url, requests_file, tmp_path / "out", "--quiet"))
    server.shutdown()
    server.server_close()
    rows, summary = written(tmp_path / "out")
    assert code == 0
    assert {(row["outcome"], row["error"]) for row in rows} == {("failed", "out of memory")}
    assert (summary["requests"]["failed"], summary["error_rate"]) == (6, 1.0)
    assert summary["validity"]["lacks"] == ["none of 6 requests succeeded"]
    assert summary["validity"]["valid"] is True


def test_a_late_client_is_exit_4(
    simulated: Simulated,
    requests_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("inference.validity.LOOP_LAG_P99_LIMIT_MS", -1.0)
    assert main(measure(simulated, requests_file, tmp_path / "out", "--quiet")) == 4
    assert "event loop lagged" in error_of(capsys)
    assert written(tmp_path / "out")[1]["validity"]["valid"] is False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_writes_what_was_measured(
    simulated: Simulated, tmp_path: Path, number: signal.Signals
) -> None:
    path = tmp_path / "r.jsonl"
    rows = [{"id": f"q{i}", "prompt": "x", "arrival_s": 0.0 if i < 3 else 60.0} for i in range(6)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "inference", *measure(simulated, path, out)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("measuring: 3/6"):
            break
    process.send_signal(number)
    assert process.wait(20) == 130
    rows, summary = written(out)
    assert [row["id"] for row in rows] == ["q0", "q1", "q2"]
    assert summary["interrupted"] is True
    assert summary["validity"]["reasons"] == ["the run was interrupted"]


def test_calibrate_and_conformance_leave_their_files(
    simulated: Simulated, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conformance", "--target", simulated, "--model", "simulated", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "conformance.json").read_text())
    assert found["schema"] == "phasegate-conformance/1"
    assert "usage at the end" in capsys.readouterr().out
    assert main(["calibrate", "--concurrency", "0"]) == 2
