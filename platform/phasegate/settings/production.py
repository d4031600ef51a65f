"""Production: everything from the environment; an unsafe setting stops the start with its reason."""

from phasegate.settings.base import *  # noqa: F403
from phasegate.settings.base import PHASEGATE_BASE_URL, env
from phasegate.settings.broker import broker_settings
from phasegate.settings.safety import from_file_or_environment, production_problems, refuse

PHASEGATE_PROFILE = "production"
SECRET_KEY = from_file_or_environment(env, "SECRET_KEY")
REDIS_URL = from_file_or_environment(env, "REDIS_URL")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=[])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
_database_url = from_file_or_environment(env, "DATABASE_URL")

refuse(
    production_problems(
        secret_key=SECRET_KEY,
        database_url=_database_url,
        redis_url=REDIS_URL,
        allowed_hosts=ALLOWED_HOSTS,
        debug=env.bool("DEBUG", default=False),
    )
)

DATABASES = {"default": env.db_url_config(_database_url)}
DATABASES["default"]["CONN_MAX_AGE"] = env.int("DATABASE_CONN_MAX_AGE_S", default=60)
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
globals().update(broker_settings(REDIS_URL))
CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}}

# without a mail server nothing is mailed; notices stand on their page and go to webhooks
if email_url := env.str("EMAIL_URL", default=""):
    globals().update(env.email_url_config(email_url))
    PHASEGATE_EMAIL = True
if not PHASEGATE_BASE_URL:
    PHASEGATE_BASE_URL = f"https://{ALLOWED_HOSTS[0].lstrip('.')}"

SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
SECURE_SSL_REDIRECT = env.bool("SSL_REDIRECT", default=True)
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", default=31_536_000)
SECURE_HSTS_INCLUDE_SUBDOMAINS = env.bool("HSTS_INCLUDE_SUBDOMAINS", default=False)
if env.bool("BEHIND_TLS_PROXY", default=True):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
