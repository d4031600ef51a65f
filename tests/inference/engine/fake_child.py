"""Stands in for the engine process in tests of its host: the same frames, no model, started in a moment.

The path of the "model" says what it does: `bad` cannot be loaded, `dies` ends while it loads, `hangs` never
gets ready, `nan` fails every request; any other answers a request with the tokens 1, 2, 3. One whose prompt
is `endless` goes on until it is aborted; `crash` ends the process. A folder with a file `once` is used up by
its first load, and `dies` from then on.
"""

import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from inference.engine import frames


class FakeChild:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.sending = threading.Lock()
        self.open: set[int] = set()
        self.name = ""

    def tell(self, *messages: list[Any]) -> None:
        with self.sending:
            frames.write(self.sock, list(messages))

    def load(self, options: dict[str, Any]) -> None:
        path = Path(options["path"])
        self.name = path.name.split("-")[0]
        if (path / "once").exists():
            (path / "once").rename(path / "used")
        elif (path / "used").exists():
            self.name = "dies"
        if self.name == "bad":
            self.tell(["unavailable", f"There is no model at {path}."])
            os._exit(0)
        if self.name == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.name == "hangs":
            signal.pause()
        configuration = {"model": path.name, "model_digest": f"sha256:{path.name}", "dtype": options["dtype"]}
        facts = {"model": path.name, "max_model_tokens": 64, "configuration": configuration, "load_ms": {}}
        self.tell(["ready", facts])

    def serve(self) -> None:
        while (commands := frames.read(self.sock)) is not None:
            for kind, *arguments in commands:
                if kind == "submit":
                    self.answer(*arguments)
                elif kind == "abort":
                    self.end(arguments[0], "aborted")
                else:
                    self.tell(["result", arguments[0], True, None])

    def answer(self, handle: int, fields: dict[str, Any]) -> None:
        now = time.monotonic_ns()
        self.tell(["queued", handle, now, 1], ["admitted", handle, now, 0])
        if self.name == "nan":
            self.tell(["failed", handle, now, "Not numbers."], ["freed", handle, now])
            return
        self.tell(*[["token", handle, now, now, number, str(number)] for number in (1, 2, 3)])
        self.open.add(handle)
        if fields["prompt"] == "crash":
            sys.stderr.write("It broke.\n")
            os._exit(3)
        if fields["prompt"] != "endless":
            self.end(handle, "finished", "length", "")

    def end(self, handle: int, kind: str, *rest: Any) -> None:
        if handle in self.open:
            self.open.discard(handle)
            now = time.monotonic_ns()
            self.tell([kind, handle, now, *rest], ["freed", handle, now])

    def beat(self) -> None:
        while True:
            self.tell(["alive"])
            time.sleep(0.1)


def main() -> None:
    child = FakeChild(socket.socket(fileno=int(sys.argv[1])))
    child.tell(["alive"])
    first = frames.read(child.sock)
    if first is None:
        return
    threading.Thread(target=child.beat, daemon=True).start()
    child.load(first[0][1])
    child.serve()


if __name__ == "__main__":
    main()
