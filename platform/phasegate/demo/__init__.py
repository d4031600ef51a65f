"""The demo organisation of the embedded profile: people, a planned project and its matrix."""
