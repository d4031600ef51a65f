"""Entry point of `manage.py` and of the `phasegate-manage` console script."""

import os
import sys


def main() -> None:
    """Run one management command; the profile comes from DJANGO_SETTINGS_MODULE, else embedded."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "phasegate.settings.embedded")
    from django.conf import settings  # noqa: PLC0415 settings must be named first
    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415
    from django.core.management import execute_from_command_line  # noqa: PLC0415

    try:
        _ = settings.INSTALLED_APPS  # reads the profile
    except ImproperlyConfigured as error:
        sys.exit(f"PhaseGate cannot start: {error}")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
