"""Settings shared by every profile; what differs is set in `embedded`, `production` and `test`."""

from pathlib import Path

import environ
from django.utils.translation import gettext_lazy as _

ROOT = Path(__file__).resolve().parents[3]
env = environ.Env()

VAR_DIR = Path(env.str("PHASEGATE_VAR", default=str(ROOT / "var"))).resolve()
PHASEGATE_PROFILE = "base"
DEBUG = False
ALLOWED_HOSTS: list[str] = []

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "channels",
    "pocs.common",
    "pocs.people",
    "pocs.projects",
    "pocs.runs",
    "pocs.serving",
    "pocs.evidence",
    "pocs.reviews",
    "pocs.notices",
    "phasegate",
]

MIDDLEWARE = [
    "pocs.common.middleware.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "phasegate.middleware.ContentSecurityPolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "phasegate.middleware.PreferencesMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "phasegate.middleware.BusyDatabaseMiddleware",
]

ROOT_URLCONF = "phasegate.urls"
ASGI_APPLICATION = "phasegate.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.template.context_processors.i18n",
                "django.contrib.messages.context_processors.messages",
            ],
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    [
                        "django.template.loaders.filesystem.Loader",
                        "django.template.loaders.app_directories.Loader",
                    ],
                )
            ],
        },
    }
]

AUTH_USER_MODEL = "people.User"
LOGIN_URL = "signin:login"
LOGIN_REDIRECT_URL = "inbox"
LOGOUT_REDIRECT_URL = "signin:login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [ROOT / "templates" / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATIC_ROOT = VAR_DIR / "static"
MEDIA_ROOT = VAR_DIR / "media"
PHASEGATE_ASSETS = VAR_DIR / "assets"  # written by `build_assets`
STATICFILES_DIRS = [ROOT / "templates" / "static", PHASEGATE_ASSETS]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "pocs.projects.api.authentication.CITokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PAGINATION_CLASS": "pocs.common.api.pagination.CursorPages",
    "PAGE_SIZE": 50,
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": [
        "pocs.common.api.parsers.StorableJSONParser",
        "rest_framework.parsers.MultiPartParser",
    ],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "pocs.common.api.problems.exception_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "PhaseGate",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    # sections start folded, so that all are seen at once: the page draws only what is in view, and a
    # browser's own search finds nothing in the rest
    "SWAGGER_UI_SETTINGS": {
        "deepLinking": True,
        "filter": True,
        "docExpansion": "none",
        "defaultModelsExpandDepth": 0,
    },
    "REDOC_DIST": "SIDECAR",
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "ENUM_NAME_OVERRIDES": {
        "ProjectState": "pocs.projects.choices.ProjectState",
        "ScenarioState": "pocs.projects.choices.ScenarioState",
        "ScenarioKind": "pocs.projects.choices.ScenarioKind",
        "AffectedKind": "pocs.projects.choices.AffectedKind",
        "ReadinessKind": "pocs.projects.choices.ReadinessKind",
        "DeclarationKind": "pocs.projects.choices.DeclarationKind",
        "ProjectRole": "pocs.people.roles.ProjectRole",
        "OrganisationRole": "pocs.people.roles.OrganisationRole",
        "RunState": "pocs.runs.choices.RunState",
        "RevisionState": "pocs.evidence.choices.RevisionState",
        "EvidenceType": "pocs.evidence.choices.EvidenceType",
        "ReviewRequestState": "pocs.evidence.choices.RequestState",
        "ThreadState": "pocs.evidence.choices.ThreadState",
        "NoticeChannel": "pocs.notices.choices.Channel",
        "DeliveryState": "pocs.notices.choices.DeliveryState",
        "RequestOutcome": "pocs.runs.choices.Outcome",
        "PackageState": "pocs.reviews.choices.PackageState",
        "SignOffState": "pocs.reviews.choices.SignOffState",
        "DecisionState": "pocs.reviews.choices.DecisionState",
        "DecisionOutcome": "pocs.reviews.choices.DecisionOutcome",
    },
}

CELERY_TASK_ACKS_LATE = True
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {"pocs.runs.tasks.run_execute": {"queue": "engine"}}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_IGNORE_RESULT = True
CELERY_TIMEZONE = "UTC"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_BEAT_SCHEDULE = {
    "tell-people": {"task": "pocs.notices.tasks.tell", "schedule": 15.0, "options": {"expires": 15}},
    "remind-people": {"task": "pocs.notices.tasks.remind", "schedule": 300.0, "options": {"expires": 300}},
    "reap-expired-leases": {"task": "pocs.runs.tasks.reap", "schedule": 15.0, "options": {"expires": 15}},
    "end-waivers": {
        "task": "pocs.reviews.tasks.waivers_expire",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "follow-up-reviews": {
        "task": "pocs.reviews.tasks.follow_up",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
}

DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024
# no request body above this is read at all; smaller ones reach the form, which keeps what was typed
PHASEGATE_BODY_MAX_BYTES = env.int("PHASEGATE_BODY_MAX_BYTES", default=128 * 1024 * 1024)
FILE_UPLOAD_PERMISSIONS = 0o640
PHASEGATE_ATTACHMENT_MAX_BYTES = env.int("PHASEGATE_ATTACHMENT_MAX_BYTES", default=20 * 1024 * 1024)
PHASEGATE_AUDIT_CHECKPOINTS = VAR_DIR / "audit-checkpoints"
PHASEGATE_MODEL_PATH = env.str(
    "PHASEGATE_MODEL_PATH", default=str(VAR_DIR / "models" / "SmolLM2-135M-Instruct")
)
PHASEGATE_RUN_LEASE_S = env.int("PHASEGATE_RUN_LEASE_S", default=30)
# live inference (pocs.serving.limits): beyond these a request is answered with 429
PHASEGATE_LIVE = {
    "queue": env.int("PHASEGATE_LIVE_QUEUE", default=64),
    "open": env.int("PHASEGATE_LIVE_OPEN", default=64),
    "token_open": env.int("PHASEGATE_LIVE_TOKEN_OPEN", default=64),
    "token_per_minute": env.int("PHASEGATE_LIVE_TOKEN_PER_MINUTE", default=1200),
    "patience_s": env.float("PHASEGATE_LIVE_PATIENCE_S", default=30.0),
    "default_tokens": env.int("PHASEGATE_LIVE_DEFAULT_TOKENS", default=1024),
    "body_bytes": env.int("PHASEGATE_LIVE_BODY_BYTES", default=2 * 1024 * 1024),
}

# e-mail and webhooks (pocs.notices)
PHASEGATE_BASE_URL = env.str("PHASEGATE_BASE_URL", default="").rstrip("/")
PHASEGATE_EMAIL = False
DEFAULT_FROM_EMAIL = env.str("PHASEGATE_EMAIL_FROM", default="PhaseGate <phasegate@localhost>")
EMAIL_TIMEOUT = 10
# webhooks reach public addresses only, and networks named here (CIDR, by comma)
PHASEGATE_WEBHOOK_ALLOWED_NETWORKS = env.list("PHASEGATE_WEBHOOK_ALLOWED_NETWORKS", default=[])
PHASEGATE_WEBHOOK_ALLOW_HTTP = env.bool("PHASEGATE_WEBHOOK_ALLOW_HTTP", default=False)

CSRF_FAILURE_VIEW = "phasegate.error_pages.csrf_failure"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "{asctime} {levelname} {name} [{request_id}] {message}", "style": "{"},
    },
    "filters": {"request_id": {"()": "pocs.common.middleware.RequestIdFilter"}},
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["request_id"]},
    },
    "root": {"handlers": ["console"], "level": env.str("PHASEGATE_LOG_LEVEL", default="INFO")},
    "loggers": {
        # Django adds a handler of its own to this one; ours at the root is enough
        "django": {"handlers": [], "propagate": True, "level": "INFO"},
    },
}
