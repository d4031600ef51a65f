"""The benchmark's side of a peer: its process, its answers, and the processor time of its process tree."""

import json
import os
import select
import signal
import subprocess
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.peers.protocol import Absent, Job, Result, Setup

ROOT = Path(__file__).resolve().parent.parent
CLOSE_GRACE_S = 10.0
RUN_LIMIT_S = 400.0


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One run of one job; `cpu_s` counts the peer's whole process tree, `load` is the machine's before it."""

    result: Result
    cpu_s: float
    load: float


class Worker:
    """One peer, loaded once and given jobs one after another. Raises Absent where it cannot, with why."""

    def __init__(
        self,
        module: str,
        python: str,
        setup: Setup,
        log: Path,
        limit_s: float = RUN_LIMIT_S,
    ) -> None:
        """`limit_s`: a run that takes longer is given up, and the peer with it."""
        if not Path(python).is_file():
            raise Absent(f"there is no {python}")
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log, self._limit_s = log, limit_s
        with log.open("wb") as sink:
            self._process = subprocess.Popen(
                [python, "-P", "-m", f"benchmarks.peers.{module}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"},
                text=True,
            )
        try:
            self.facts = self._ask(asdict(setup), "ready", None)
            self._signal(signal.SIGSTOP)
        except BaseException:
            self.close()
            raise

    @property
    def resident_bytes(self) -> int:
        return sum(process.memory_info().rss for process in self._tree())

    def run(self, job: Job) -> Measurement:
        """Do one job. Between jobs a peer stands still: what it did meanwhile would cost the other side."""
        load, before = os.getloadavg()[0], self._cpu_s()
        self._signal(signal.SIGCONT)
        try:
            result = Result(**self._ask(asdict(job), "result", self._limit_s))
        finally:
            self._signal(signal.SIGSTOP)
        wanted = job.out * len(job.prompts)
        if result.output_tokens != wanted:
            raise Absent(f"it made {result.output_tokens} tokens instead of {wanted}")
        return Measurement(result=result, cpu_s=self._cpu_s() - before, load=load)

    def close(self) -> None:
        self._signal(signal.SIGCONT)
        tree = self._tree()
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(CLOSE_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        for process in psutil.wait_procs(tree, timeout=1.0)[1]:
            process.kill()

    def _ask(self, content: dict[str, Any], wanted: str, limit_s: float | None) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(content) + "\n")
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], limit_s)[0]:
                self._process.kill()
                raise Absent(f"it took longer than {limit_s:g} s")
            line = self._process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            raise Absent(self._last_words())
        answer = json.loads(line)
        if wanted not in answer:
            raise Absent(answer["absent"])
        return answer[wanted]

    def _last_words(self) -> str:
        code = self._process.wait(CLOSE_GRACE_S)
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        said = lines[-1].strip() if lines else "it said nothing"
        return f"its process ended with {code}: {said} ({self._log})"

    def _tree(self) -> list[psutil.Process]:
        try:
            top = psutil.Process(self._process.pid)
            return [top, *top.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _signal(self, number: signal.Signals) -> None:
        for process in self._tree():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def _cpu_s(self) -> float:
        """User and system seconds of all that live; a peer starts its processes when it loads."""
        return sum(sum(process.cpu_times()[:2]) for process in self._tree())
