"""The conversation with a peer: a process that loads, answers job after job, or says why it cannot."""

import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from benchmarks.peers.protocol import Absent, Job, Setup
from benchmarks.worker import Worker

PEER = """
import os, sys
from benchmarks.peers.protocol import Absent, Result, serve

class Fake:
    def __init__(self, setup):
        print("a library talks on stdout")
        if setup.dtype == "int4":
            raise Absent("no int4 here")
        if setup.dtype == "int8":
            sys.stderr.write("out of luck\\n")
            os._exit(3)
        self.setup = setup

    def facts(self):
        return {"threads": self.setup.threads}

    def run(self, job):
        print("and again")
        if job.out == 99:
            sys.stdin.read()
        if job.arrivals_s:
            raise Absent("no arrivals")
        lost = 1 if job.out == 9 else 0
        return Result(wall_s=0.5, output_tokens=job.out * len(job.prompts) - lost, first_ids=[1])

serve(Fake)
"""


@pytest.fixture
def python(tmp_path: Path) -> str:
    """An interpreter that runs the fake peer, whichever module it is asked for."""
    (tmp_path / "peer.py").write_text(PEER)
    command = tmp_path / "python"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P "{tmp_path / "peer.py"}"\n')
    command.chmod(0o755)
    return str(command)


def worker(python: str, tmp_path: Path, dtype: str = "float32", limit_s: float = 60.0) -> Worker:
    setup = Setup(model="m", dtype=dtype, threads=2)
    return Worker("any", python, setup, tmp_path / "logs" / "peer.log", limit_s)


def test_a_peer_answers_jobs_whatever_its_libraries_print(python, tmp_path):
    peer = worker(python, tmp_path)
    try:
        assert peer.facts["threads"] == 2
        for _ in range(2):
            measured = peer.run(Job(prompts=[[1], [2]], out=3))
            assert measured.result.output_tokens == 6
            assert measured.cpu_s >= 0
        with pytest.raises(Absent, match="no arrivals"):
            peer.run(Job(prompts=[[1]], out=1, arrivals_s=[0.1]))
        with pytest.raises(Absent, match="8 tokens instead of 9"):
            peer.run(Job(prompts=[[1]], out=9))
    finally:
        peer.close()


def test_a_peer_stands_still_between_its_jobs(python, tmp_path):
    peer = worker(python, tmp_path)
    try:
        pid = peer._process.pid
        stopped = os.waitid(os.P_PID, pid, os.WSTOPPED)  # once a signal is sent it takes a moment
        assert stopped is not None
        assert stopped.si_status == signal.SIGSTOP
        peer.run(Job(prompts=[[1]], out=3))
        again = os.waitid(os.P_PID, pid, os.WSTOPPED)
        assert again is not None
        assert again.si_status == signal.SIGSTOP
    finally:
        peer.close()
    assert not psutil.pid_exists(pid)


def test_a_peer_that_cannot_says_why(python, tmp_path):
    with pytest.raises(Absent, match="no int4 here"):
        worker(python, tmp_path, "int4")


def test_a_peer_that_dies_leaves_its_last_words(python, tmp_path):
    with pytest.raises(Absent, match="ended with 3: out of luck"):
        worker(python, tmp_path, "int8")


def test_a_run_without_end_is_given_up(python, tmp_path):
    peer = worker(python, tmp_path, limit_s=0.2)
    try:
        with pytest.raises(Absent, match=r"longer than 0\.2 s"):
            peer.run(Job(prompts=[[1]], out=99))
        with pytest.raises(Absent, match="ended with -9"):
            peer.run(Job(prompts=[[1]], out=1))
    finally:
        peer.close()


def test_a_missing_environment_is_named(tmp_path):
    with pytest.raises(Absent, match="there is no /nowhere/python"):
        worker("/nowhere/python", tmp_path)
