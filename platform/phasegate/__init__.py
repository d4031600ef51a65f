"""Wiring of the site: settings, routing, processes. No domain rule lives here."""
