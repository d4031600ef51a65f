"""States and outcomes with their labels and colours, for the scripts of live pages."""

from typing import Any

from pocs.common.templatetags.phasegate import tone
from pocs.runs.choices import FINAL_STATES, Outcome, RunState
from pocs.runs.wording.kind_names import STAGES


def script_words() -> dict[str, Any]:
    """Labels in the reader's language, the colour class of each, and which states end a run."""
    return {
        "states": {state.value: {"label": str(state.label), "tone": tone(state.value)} for state in RunState},
        "outcomes": {item.value: {"label": str(item.label), "tone": tone(item.value)} for item in Outcome},
        "stages": {name: str(label) for name, label in STAGES.items()},
        "final": [str(state.value) for state in FINAL_STATES],
    }
