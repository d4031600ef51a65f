"""Settings of the test suite: in-memory channel layer, tasks run in place, fast password hashes."""

import tempfile
from pathlib import Path

from phasegate.settings.base import *  # noqa: F403
from phasegate.settings.base import env

PHASEGATE_PROFILE = "test"
SECRET_KEY = "test-only"  # noqa: S105 no deployment reads this profile
ALLOWED_HOSTS = ["*"]
VAR_DIR = Path(tempfile.mkdtemp(prefix="phasegate-test-"))
MEDIA_ROOT = VAR_DIR / "media"
PHASEGATE_AUDIT_CHECKPOINTS = VAR_DIR / "audit-checkpoints"
DATABASES = {"default": env.db_url("DATABASE_URL", default="sqlite://:memory:")}
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
CELERY_TASK_ALWAYS_EAGER = True
CELERY_TASK_EAGER_PROPAGATES = True
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
