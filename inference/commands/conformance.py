"""`conformance`: which stream habits an endpoint has."""

import argparse
import asyncio
from pathlib import Path

from inference.commands.shell import MEASURED, Commands, api_key, run_until_signal, unless
from inference.load.session import prepare_folder, write_json
from inference.targets.openai_conformance import conformance

MARKS = {"misleads": "misleads", "limits": "limits", "harmless": "harmless", "not_seen": "-"}


def add(commands: Commands) -> None:
    """Add the command and its options."""
    habits = commands.add_parser("conformance", help="which stream habits an endpoint has")
    habits.add_argument("--target", required=True)
    habits.add_argument("--model", required=True)
    habits.add_argument("--api-key-env", metavar="VAR")
    habits.add_argument("--out", type=Path)
    habits.set_defaults(command=_conformance)


def _conformance(options: argparse.Namespace) -> int:
    if options.out:
        prepare_folder(options.out)

    async def run(stop: asyncio.Event) -> int:
        key = api_key(options.api_key_env)
        found = await unless(stop, conformance(options.target, options.model, api_key=key))
        if options.out:
            write_json(options.out / "conformance.json", found)
        print(f"server: {found['dialect']['title']} ({'; '.join(found['dialect']['found_from'])})")
        for habit in found["habits"]:
            print(f"{MARKS[habit['effect']]:10} {habit['name']:42} {habit['seen']}")
            if habit["effect"] in ("misleads", "limits"):
                print(f"{'':10} {habit['why_it_matters']}; PhaseGate: {habit['handled']}")
        return MEASURED

    return run_until_signal(run)
