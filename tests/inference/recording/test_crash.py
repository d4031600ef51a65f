"""A recording process is killed: nothing that had ended is lost, what ran is known up to two seconds."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from inference.recording.segments import read_segment

CHILD = """
import sys, time
from pathlib import Path
from inference.recording.spool import Spool
from inference.records import RequestRecord, Trace

def record(index, reads):
    empty = dict.fromkeys(RequestRecord.__dataclass_fields__)
    fields = empty | dict(id=f"r{index}", index=index, outcome="success", text="x" * 50, reasoning_text="",
        stamps={}, intervals_ms={}, reads=reads, tenant="", application="", warmup=False, server={},
        streamed=True, flags=[], detail={}, tool_call_text="")
    return RequestRecord(**fields)

long = Trace("long", 9999, dispatched_ns=time.monotonic_ns(), sent_ns=time.monotonic_ns())
spool = Spool(Path(sys.argv[1]), in_flight=lambda: (long,))
spool.start()
index = 0
while True:
    long.reads.append((time.monotonic_ns(), 1))
    spool.put(record(index, [(time.monotonic_ns(), 1)] * 20))
    written = spool.take()
    if written:
        print(written[-1].record.index, long.reads[-1][0], flush=True)
    index += 1
    time.sleep(0.002)  # the rate of the load, as tokens come in; nothing is waited for
"""


def test_a_killed_process_loses_no_ended_request_and_two_seconds_at_most(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.stdout is not None
    told = [child.stdout.readline()]
    until = time.monotonic() + 3.5
    while time.monotonic() < until:
        told.append(child.stdout.readline())
    child.send_signal(signal.SIGKILL)
    told += child.stdout.readlines()
    child.wait()
    last_index, last_ns = (int(part) for part in told[-1].split() if told[-1].endswith("\n"))

    contents = read_segment(tmp_path / "run" / "000001.pgrec")

    assert all(damage.torn for damage in contents.damage)
    records = [item for _place, item in contents.items if item["kind"] == "record"]
    assert [item["index"] for item in records] == list(range(len(records)))
    assert len(records) > last_index > 100
    parts = [item for _place, item in contents.items if item["kind"] == "partial"]
    seen_ns = max(item["reads"]["from"] + sum(item["reads"]["after"]) for item in parts)
    assert last_ns - seen_ns < 2_000_000_000
    first = [item["from_read"] for item in parts]
    assert first == sorted(first)
    assert json.dumps(parts[0]["id"]) == '"long"'
