"""POC projects: what they declare, their scenarios, gates and CI tokens."""
