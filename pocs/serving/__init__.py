"""Live inference: the embedded engine behind the OpenAI API, for holders of a project token."""
