"""What production refuses to start with, and why."""

from pathlib import Path

import environ
from django.core.exceptions import ImproperlyConfigured

from phasegate.secrets import SECRET_KEY_MIN_CHARS


def from_file_or_environment(env: environ.Env, name: str) -> str:
    """The value of NAME, or the content of the file that NAME_FILE names; empty when neither is set.

    Raises ImproperlyConfigured when the file cannot be read.
    """
    path = env.str(f"{name}_FILE", default="")
    if not path:
        return env.str(name, default="")
    try:
        return Path(path).read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{name}_FILE: {path} cannot be read: {error.strerror}.") from error


def production_problems(
    *, secret_key: str, database_url: str, redis_url: str, allowed_hosts: list[str], debug: bool
) -> list[str]:
    """One sentence for each unsafe or missing setting; empty when production may start."""
    problems = []
    if debug:
        problems.append("DEBUG is on: it shows source code and settings to anyone; unset it.")
    if not secret_key:
        problems.append("SECRET_KEY (or SECRET_KEY_FILE) is not set.")
    elif len(secret_key) < SECRET_KEY_MIN_CHARS or secret_key.startswith("django-insecure"):
        problems.append(f"SECRET_KEY must be random and have at least {SECRET_KEY_MIN_CHARS} characters.")
    if not allowed_hosts:
        problems.append("ALLOWED_HOSTS is not set: name the hosts that the site answers to.")
    elif any(host.strip() in {"*", "."} for host in allowed_hosts):
        problems.append("ALLOWED_HOSTS is open to any host; name the hosts that the site answers to.")
    if not database_url:
        problems.append("DATABASE_URL (or DATABASE_URL_FILE) is not set.")
    elif not database_url.startswith(("postgres://", "postgresql://")):
        problems.append(
            "DATABASE_URL must name PostgreSQL: SQLite serves one machine and no second web process."
        )
    if not redis_url:
        problems.append("REDIS_URL (or REDIS_URL_FILE) is not set: workers and live pages need it.")
    elif not redis_url.startswith(("redis://", "rediss://", "unix://")):
        problems.append("REDIS_URL must begin with redis://, rediss:// or unix://.")
    return problems


def refuse(problems: list[str]) -> None:
    """Raise ImproperlyConfigured with all problems, one a line."""
    if problems:
        raise ImproperlyConfigured(
            "production refuses to start:\n" + "\n".join(f"  - {line}" for line in problems)
        )
