"""The questions Q1–Q28 with their answers from a project's material, in a view for each audience (O3)."""
