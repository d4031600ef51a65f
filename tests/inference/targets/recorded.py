"""Recorded pages and answers of real servers, as text."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "data" / "recordings"
VLLM, LLAMA = "vllm-0.32", "llama-cpp/native"


def page(name: str) -> str:
    """A scrape of `/metrics`."""
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def exchange(name: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of one recorded answer."""
    recording: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    body = "".join(chunk[1] for chunk in recording["chunks"]).encode()
    return recording["status"], recording["headers"], body
