"""One machine, nothing to install: SQLite, an embedded Valkey on a unix socket, loopback only."""

from phasegate.secrets import stored_secret_key
from phasegate.settings.base import *  # noqa: F403
from phasegate.settings.base import PHASEGATE_BASE_URL, VAR_DIR, env
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

# what would be mailed is written below the data folder, one file a message
PHASEGATE_BASE_URL = PHASEGATE_BASE_URL or f"http://127.0.0.1:{env.int('PORT', default=8000)}"
PHASEGATE_EMAIL = True
if email_url := env.str("EMAIL_URL", default=""):
    globals().update(env.email_url_config(email_url))
else:
    EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    EMAIL_FILE_PATH = VAR_DIR / "mail"

SESSION_COOKIE_NAME = "phasegate_session"
CSRF_COOKIE_NAME = "phasegate_csrf"
