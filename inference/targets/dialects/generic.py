"""Any OpenAI-compatible endpoint that no other dialect recognises: only what the client sees counts."""

from inference.targets.dialects.base import Dialect, Evidence, Signs


def _signs(evidence: Evidence) -> Signs:
    return Signs(("nothing that names a server was found",))


GENERIC = Dialect(name="generic", title="OpenAI-compatible", signs=_signs)
