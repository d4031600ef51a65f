"""Profiles of the site: `embedded`, `production` and `test` over a common base."""
