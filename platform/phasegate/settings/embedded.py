"""One machine, nothing to install: SQLite, an embedded Valkey on a unix socket, loopback only."""

from phasegate.secrets import stored_secret_key
from phasegate.settings.base import *  # noqa: F403
from phasegate.settings.base import VAR_DIR, env
from phasegate.settings.broker import broker_settings, runtime_dir

PHASEGATE_PROFILE = "embedded"
SECRET_KEY = stored_secret_key(VAR_DIR)
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", *env.list("PHASEGATE_EXTRA_HOSTS", default=[])]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": VAR_DIR / "phasegate.sqlite3",
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }
}

REDIS_URL = f"unix://{runtime_dir(VAR_DIR) / 'valkey.sock'}"
globals().update(broker_settings(REDIS_URL))

SESSION_COOKIE_NAME = "phasegate_session"
CSRF_COOKIE_NAME = "phasegate_csrf"
