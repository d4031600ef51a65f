"""Pages of every app: who acts, and how errors of services reach forms and readers."""
