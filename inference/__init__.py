"""Phase-exact measurement of LLM inference: engine, targets, load and figures; no web framework."""
