"""Run a command that ends when its parent ends: `tether.py PARENT_PID SIGNAL COMMAND…`.

Executed as a file by a bare interpreter (`-I -S`), so it imports nothing of the site. The kernel
keeps the parent-death signal over exec; where there is no prctl (macOS) the command simply runs.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int, death_signal: int) -> bool:
    """Ask the kernel for `death_signal` at the parent's end; False when the parent is gone already."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    return os.getppid() == parent


def main() -> None:
    parent, death_signal, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    # a shell starts background jobs with SIGINT ignored, and that would be inherited
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    if not end_with_parent(parent, death_signal):
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 the command comes from the supervisor alone


if __name__ == "__main__":
    main()
