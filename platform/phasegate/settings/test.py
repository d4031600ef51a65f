"""Settings of the test suite: in-memory channel layer, tasks run in place, fast password hashes.

DATABASE_URL and REDIS_URL put the same suite on PostgreSQL and on a real channel layer.
"""

import atexit
import shutil
import tempfile
from pathlib import Path

from phasegate.settings.base import *  # noqa: F403
from phasegate.settings.base import env
from phasegate.settings.broker import broker_settings

PHASEGATE_PROFILE = "test"
SECRET_KEY = "test-only"  # noqa: S105 no deployment reads this profile
ALLOWED_HOSTS = ["*"]
VAR_DIR = Path(tempfile.mkdtemp(prefix="phasegate-test-"))
atexit.register(shutil.rmtree, VAR_DIR, ignore_errors=True)
MEDIA_ROOT = VAR_DIR / "media"
STATIC_ROOT = VAR_DIR / "static"
STATIC_ROOT.mkdir()
PHASEGATE_AUDIT_CHECKPOINTS = VAR_DIR / "audit-checkpoints"
DATABASES = {"default": env.db_url("DATABASE_URL", default="sqlite://:memory:")}
REDIS_URL = env.str("REDIS_URL", default="")
if REDIS_URL:
    CHANNEL_LAYERS = broker_settings(REDIS_URL)["CHANNEL_LAYERS"]
else:
    CHANNEL_LAYERS = {
        "default": {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 10_000}}
    }
# events are stored and replayed; a test that wants them published fills the port itself
PHASEGATE_LIVE_PUBLISH = False
PHASEGATE_BASE_URL = "https://phasegate.example"
PHASEGATE_EMAIL = True
CELERY_TASK_ALWAYS_EAGER = True
CELERY_TASK_EAGER_PROPAGATES = True
CELERY_BROKER_URL = "memory://"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
