#!/usr/bin/env python
"""Django's command line for PhaseGate."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
# The source root `platform/` shares its name with a standard library module: the repository
# root goes to the end of the path, so that `import platform` keeps its meaning.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]
sys.path += [str(ROOT / "platform"), str(ROOT)]

if __name__ == "__main__":
    from phasegate.management_entry import main

    main()
