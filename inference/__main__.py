"""The measuring core on the command line; each command is a module of `inference.commands`."""

import sys

from inference.commands import calibrate, compare, conformance, measure, rescore, simulate, workload
from inference.commands.shell import BAD_INPUT, BROKEN, INTERRUPTED, NO_TARGET, Parser, complain
from inference.errors import InferenceError, InputError, RequestRejected, TargetUnavailable

COMMANDS = (measure, rescore, compare, simulate, calibrate, conformance, workload)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code (0 measured, 2 input, 3 target, 4 invalid, 130 interrupted)."""
    try:
        options = _parser().parse_args(arguments)
        code: int = options.command(options)
        return code
    except (InputError, RequestRejected) as fault:
        return complain(fault, BAD_INPUT)
    except TargetUnavailable as fault:
        return complain(fault, NO_TARGET)
    except KeyboardInterrupt:
        return complain("interrupted before anything was measured", INTERRUPTED)
    except (InferenceError, OSError) as fault:
        return complain(fault, BAD_INPUT)
    except Exception as fault:
        return complain(f"internal error: {type(fault).__name__}: {fault}", BROKEN)


def _parser() -> Parser:
    parser = Parser(prog="python -m inference", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    for module in COMMANDS:
        module.add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
