"""Write the browser's chart library, taken from the installed `vl_convert`, into the assets folder.

Nothing is fetched: the bundle (Vega, Vega-Lite, Vega-Embed) is part of
the package, so that page and PDF draw with the same version. The folder is not committed.
"""

import hashlib
from pathlib import Path
from typing import Any

import vl_convert
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

BUNDLE = Path("vendor") / "vega.js"
STAMP = Path("vendor") / "vega.version"


class Command(BaseCommand):
    help = "Builds what the browser loads beside the committed files: the chart library."
    requires_system_checks = []

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--force", action="store_true", help="build again even when it is there")

    def handle(self, *args: Any, **options: Any) -> None:
        folder = Path(settings.PHASEGATE_ASSETS)
        version = bundle_version()
        bundle, stamp = folder / BUNDLE, folder / STAMP
        if not options["force"] and bundle.is_file() and stamp.is_file() and stamp.read_text() == version:
            self.stdout.write("The chart library is built already.")
            return
        try:
            bundle.parent.mkdir(parents=True, exist_ok=True)
            text = vl_convert.javascript_bundle()
            partial = bundle.with_suffix(".part")
            partial.write_text(text, encoding="utf-8")
            partial.replace(bundle)
            stamp.write_text(version)
        except OSError as error:
            raise CommandError(f"The assets folder {folder} cannot be written: {error.strerror}.") from error
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        self.stdout.write(f"Built {bundle} ({len(text) // 1024} KiB, {digest}).")


def bundle_version() -> str:
    """The versions that the bundle is made of; a change of one builds it again."""
    return f"vega {vl_convert.get_vega_version()} embed {vl_convert.get_vega_embed_version()}\n"
