"""The switch from one model to another: beside the old one, or after unloading it, with the way back."""

import queue
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import psutil

from inference.engine.estimate import PROCESS_BYTES, need_of
from inference.engine.host import EngineHost, Event
from inference.engine.memory import available_bytes
from inference.engine.options import EngineOptions
from inference.engine.stages import timed
from inference.errors import TargetUnavailable
from inference.requests import GenerationRequest
from inference.targets.follower import wire
from inference.targets.gate import Gate
from inference.targets.loaded import Loaded, new_host, start
from inference.targets.switch_report import SwitchFailed, SwitchReport
from inference.telemetry.gpu import GpuSampler
from inference.telemetry.residents import Residents, resident_bytes

Asked = Literal["auto", "beside", "unload_first"]
DRAIN_LIMIT_S = 60.0  # before an unload: open requests that take longer are ended, since others wait
PROBE = GenerationRequest(id="switch probe", prompt="1 2 3", max_tokens=4, ignore_eos=True, namespace="probe")
PREPARE_BYTES = 2 * PROCESS_BYTES  # free memory with which a process may wait for its model to have room
PROBE_SLACK_S = 10.0  # beyond the step limit, which ends a probe that hangs
#: resident memory after a switch that changed nothing may exceed the memory before by this
BASELINE_SHARE, BASELINE_BYTES = 1.1, 64 * 2**20


@dataclass
class Place:
    """Where requests find the engine: the model that serves now, and the gate before it."""

    loaded: Loaded | None = None
    gate: Gate = field(default_factory=Gate)
    empty: str = "The engine is not open."  # why there is none


class Switch:
    """One switch of what is in `place`, made by `run` in a thread of its own choosing.

    `how`: `beside` loads the new model while the old one serves; `unload_first` ends the old one before,
    and lets arriving requests wait at the gate; `auto` chooses by the memory that the new one will need.
    `refusal` says why the new one is not even tried. `hosts` are all processes that had a part in it.
    """

    def __init__(
        self,
        place: Place,
        old: EngineOptions,
        new: EngineOptions,
        *,
        how: Asked,
        drain_limit_s: float | None,
        mute_limit_s: float,
        refusal: str | None = None,
    ) -> None:
        self._place, self._old, self._new = place, old, new
        self._drain_limit_s, self._mute_limit_s = drain_limit_s, mute_limit_s
        self._before = place.loaded
        self.hosts = [place.loaded.host] if place.loaded is not None else []
        self._loading: EngineHost | None = None
        self._abandoned: str | None = None
        self._closed: str | None = None
        self._holding = False
        self._asked, self._refusal = how, refusal
        self._begun_ns = time.monotonic_ns()
        self._outage_ns: int | None = None  # since when nobody is served
        self.report = SwitchReport(
            how="beside" if how == "beside" else "unload_first",
            how_reason="asked for",
            source=None if self._before is None else _named(self._before),
            target={"path": new.path, "model": new.model_path.name, "model_digest": None, "dtype": new.dtype},
            started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )

    # -- the choice -----------------------------------------------------------------------------------

    def _choose(self) -> None:
        """Fill in how; raises TargetUnavailable where the new model will not even fit by itself."""
        if not self._new.model_path.exists():  # seen at once, before anything is unloaded for it
            raise TargetUnavailable(f"There is no model at {self._new.path}.")
        device = self._device()
        need = need_of(self._new, auto_dtype=self._dtype_of_auto(), on_device=device != "cpu")
        available, freed = self._free_on(device)
        found, report = self.report.memory, self.report
        found.available_bytes, found.need_bytes = available, need.total_bytes if need else None
        if self._asked != "auto":
            return
        if self._before is None or not self._before.host.alive:
            report.how, report.how_reason = "unload_first", "no model is loaded"
        elif available is None:
            report.how, report.how_reason = "unload_first", f"nobody tells how much of {device} is free"
        elif need is None:
            report.how, report.how_reason = "beside", "the files do not tell what the new model needs"
        else:
            report.how = "beside" if need.total_bytes <= available else "unload_first"
            report.how_reason = f"it needs about {_mib(need.total_bytes)}, and {_mib(available)} are free"
        if need is not None and available is not None and need.total_bytes > available + freed:
            raise TargetUnavailable(
                f"it needs about {_mib(need.total_bytes)} of memory, and with nothing else loaded only "
                f"{_mib(available + freed)} would be free."
            )

    def _device(self) -> str:
        """Where the new model will be: `cpu`, or `cuda:N`."""
        if self._new.device != "auto":
            return "cuda:0" if self._new.device == "cuda" else self._new.device
        here = self._before.info.configuration.get("device") if self._before is not None else None
        return here or "cpu"

    def _free_on(self, device: str) -> tuple[int | None, int]:
        """(bytes that are free there, bytes that the old model would give back)."""
        pids = [host.pid for host in self.hosts if host.pid is not None]
        if device == "cpu":
            return available_bytes(), resident_bytes(pids)
        gpu = GpuSampler()
        try:
            return gpu.free_bytes(int(device.partition(":")[2] or 0)), gpu.process_bytes(pids) or 0
        finally:
            gpu.close()

    def _dtype_of_auto(self) -> str | None:
        if self._before is None or self._before.options.dtype != "auto":
            return None
        return self._before.info.configuration.get("dtype")

    # -- the switch -----------------------------------------------------------------------------------

    def run(self) -> SwitchReport:
        """Switch; raises SwitchFailed, with the report, when the new model does not serve afterwards."""
        memory = Residents(lambda: [host.pid for host in self.hosts if host.pid is not None])
        memory.start()
        try:
            self._choose()
            if self._refusal is not None:
                raise TargetUnavailable(self._refusal)
            if self.report.how == "beside":
                self._beside()
            else:
                self._unload_first()
        except TargetUnavailable as error:
            self._fail(str(error))
        finally:
            memory.stop()
            self._conclude(memory)
        if self.report.outcome != "switched":
            raise SwitchFailed(self._sentence(), self.report)
        return self.report

    def abandon(self, reason: str) -> None:
        """Give up loading the new model, from any thread; what served before serves again."""
        self._abandoned = reason
        loading = self._loading
        if loading is not None and loading.options is self._new:
            loading.close(reason)

    def close(self, reason: str) -> None:
        """Give up everything, from any thread: the target is closed."""
        self._closed = self._abandoned = reason
        for host in list(self.hosts):
            host.close(reason)

    def _beside(self) -> None:
        old, new = self._before, self._load(self._new, "load", "first_good_token")
        self._place.loaded = new
        self._take_over(new)
        if old is not None:
            self._drain(old, self._drain_limit_s)
            self._unload(old)

    def _unload_first(self) -> None:
        prepared = self._prepare()
        with self._arrivals_held():
            if self._before is not None:
                limit_s = self._drain_limit_s
                self._drain(self._before, DRAIN_LIMIT_S if limit_s is None else limit_s)
                self._outage_ns = time.monotonic_ns()
                self._place.loaded = None
                self._place.empty = f"The engine is being switched to {self._new.path}."
                self._unload(self._before)
            try:
                self._place.loaded = new = self._load(self._new, "load", "first_good_token", prepared)
            except TargetUnavailable as error:
                self._fail(str(error))
            else:
                self._take_over(new)

    @contextmanager
    def _arrivals_held(self) -> Iterator[None]:
        """Requests that arrive meanwhile wait, and go on to whichever model is loaded at the end."""
        if self._holding:
            yield
            return
        self._holding, begun_ns, gate = True, time.monotonic_ns(), self._place.gate
        gate.shut(self._old.max_waiting)
        try:
            yield
        finally:
            released = gate.open()
            requests = self.report.requests
            requests.waited, requests.refused = gate.waited, gate.refused
            requests.failed += requests.refused + (released if self._place.loaded is None else 0)
            self.report.held_ms = _ms_since(begun_ns)

    def _take_over(self, new: Loaded) -> None:
        self.report.outcome = "switched"
        self.report.target, self.report.load_ms = _named(new), new.info.load_ms

    def _fail(self, reason: str) -> None:
        """The new model does not serve: whatever served before goes on, or is loaded again."""
        self.report.reason = reason
        old = self._before
        if old is None:
            self.report.outcome = "kept"  # nothing was loaded, and nothing is
        elif old.host.alive and self._place.loaded is old:
            self.report.outcome = "kept"
        else:
            self._roll_back()

    def _roll_back(self) -> None:
        with self._arrivals_held():
            try:
                self._place.loaded = self._load(self._old, "rollback_load", "rollback_first_good_token")
                self.report.outcome = "rolled_back"
            except TargetUnavailable as error:
                self._place.loaded = None
                self.report.outcome, self.report.rollback_reason = "lost", str(error)
                self._place.empty = self._sentence()

    # -- its stages -----------------------------------------------------------------------------------

    def _prepare(self) -> EngineHost | None:
        """The new process without its model, while the old one still serves; None where it has no room."""
        if self._before is None or not self._before.host.alive or available_bytes() < PREPARE_BYTES:
            return None
        host = self._new_host(self._new)
        with timed(self.report.stages_ms, "prepare"):
            try:
                host.prepare()
            except TargetUnavailable:
                host.close()
                raise
        return host

    def _new_host(self, options: EngineOptions) -> EngineHost:
        """Not started yet; raises TargetUnavailable where its load is given up already."""
        host = new_host(options, self._mute_limit_s)
        self.hosts.append(host)
        self._loading = host
        if (reason := self._abandoned if options is self._new else self._closed) is not None:
            raise TargetUnavailable(reason)
        return host

    def _drain(self, old: Loaded, limit_s: float | None) -> None:
        """Let open requests end; those that are left after the limit are cut by the unload."""
        old.host.retire()
        self.report.requests.drained = old.host.open_requests
        with timed(self.report.stages_ms, "drain"):
            old.host.wait_idle(limit_s)

    def _unload(self, old: Loaded) -> None:
        with timed(self.report.stages_ms, "unload"):
            old.host.close(f"The model was unloaded for {self._new.path} before this request had ended.")
        self.report.requests.drained = max(0, self.report.requests.drained - old.host.cut)
        self.report.requests.failed += old.host.cut

    def _load(
        self, options: EngineOptions, load_stage: str, token_stage: str, prepared: EngineHost | None = None
    ) -> Loaded:
        """Load a model and let it answer; raises TargetUnavailable, and leaves no process then."""
        host = prepared or self._new_host(options)
        try:
            with timed(self.report.stages_ms, load_stage):
                loaded = start(host)
            try:
                with timed(self.report.stages_ms, token_stage):
                    token_ns = first_good_token(loaded)
            except TargetUnavailable:
                host.close()
                raise
        finally:
            self._loading = None
        self.report.first_good_token_ms = (token_ns - self._begun_ns) / 1e6
        self._served_again(token_ns)
        return loaded

    def _served_again(self, token_ns: int) -> None:
        since_ns = self._outage_ns
        if since_ns is None and self._before is not None:
            since_ns = self._before.host.ended_ns  # it died by itself while the other was loading
        self.report.outage_ms = 0.0 if since_ns is None else max(0, token_ns - since_ns) / 1e6

    # -- the end --------------------------------------------------------------------------------------

    def _conclude(self, memory: Residents) -> None:
        report, found = self.report, self.report.memory
        if report.outcome == "kept" and self._before is not None:
            report.outage_ms = 0.0
            report.first_good_token_ms = None
        elif report.outcome == "lost":
            report.outage_ms = report.first_good_token_ms = None
        report.total_ms = _ms_since(self._begun_ns)
        for name in ("before_bytes", "peak_bytes", "after_bytes"):
            setattr(found, name, getattr(memory, name))
            setattr(found, f"device_{name}", getattr(memory, f"device_{name}"))
        serving = self._place.loaded.host.pid if self._place.loaded is not None else None
        left = [host.pid for host in self.hosts if host.pid != serving and _exists(host.pid)]
        grown = memory.after_bytes > memory.before_bytes * BASELINE_SHARE + BASELINE_BYTES
        found.back_to_baseline = not left and (report.outcome == "switched" or not grown)

    def _sentence(self) -> str:
        report, old = self.report, self._old.path
        first = f"The engine did not switch to {self._new.path}: {report.reason}"
        match report.outcome:
            case "kept" if self._before is not None:
                return f"{first} {old} goes on answering."
            case "rolled_back":
                return f"{first} {old} has been loaded again and answers."
            case "lost":
                return f"{first} {old} could not be loaded again either: {report.rollback_reason}"
        return f"{first} No model is loaded."


def first_good_token(loaded: Loaded) -> int:
    """Let the engine answer a short greedy request; ns of its first token. Raises TargetUnavailable.

    An answer is good when it ends in order and all its ids are of the model's vocabulary; logits that are
    not numbers fail the request in the engine.
    """
    host, first_ns, tokens, over = loaded.host, 0, [], False
    batches: queue.Queue[list[Event]] = queue.Queue()
    handle = host.subscribe(lambda _, events: batches.put(events))
    limit_s = loaded.options.step_limit_s + PROBE_SLACK_S
    try:
        host.send(["submit", handle, wire(PROBE)])
        while not over:
            for kind, _, ns, *rest in batches.get(timeout=limit_s):
                if kind == "token":
                    first_ns = first_ns or ns
                    tokens.append(rest[1])
                elif kind in ("failed", "rejected"):
                    raise TargetUnavailable(f"{loaded.info.model} is loaded but does not answer: {rest[0]}")
                over = over or kind == "freed"
    except queue.Empty:
        raise TargetUnavailable(
            f"{loaded.info.model} is loaded but gave no answer within {limit_s:g} s."
        ) from None
    finally:
        host.unsubscribe(handle)
    vocabulary = loaded.info.configuration.get("shape", {}).get("vocabulary")
    if not tokens or (vocabulary is not None and not all(0 <= one < vocabulary for one in tokens)):
        raise TargetUnavailable(f"{loaded.info.model} is loaded but answers with tokens {tokens}.")
    host.call("reset_prefix_cache")
    host.finished = 0  # nobody has been served yet
    return first_ns


def _named(loaded: Loaded) -> dict[str, Any]:
    configuration = loaded.info.configuration
    return {
        "path": loaded.options.path,
        "model": loaded.info.model,
        "model_digest": configuration.get("model_digest"),
        "dtype": configuration.get("dtype"),
    }


def _exists(pid: int | None) -> bool:
    return pid is not None and psutil.pid_exists(pid)


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:,.0f} MiB"


def _ms_since(ns: int) -> float:
    return (time.monotonic_ns() - ns) / 1e6
