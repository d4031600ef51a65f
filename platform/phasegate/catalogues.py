"""Translation catalogues: where they are, and compiling those whose source is newer."""

from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import PoFileError, read_po
from django.conf import settings

#: folder name of the one language besides the source's own
LOCALE = "zh_Hans"
DOMAINS = ("django.po", "djangojs.po")


def locale_folders() -> list[Path]:
    """The locale folders of the project: one of each app, one of the templates and the rest."""
    return [*sorted(settings.ROOT.glob("pocs/*/locale")), settings.ROOT / "templates" / "locale"]


def catalogue_files() -> list[Path]:
    """Every .po file of the project."""
    folders = [folder / LOCALE / "LC_MESSAGES" for folder in locale_folders()]
    return [folder / domain for folder in folders for domain in DOMAINS if (folder / domain).exists()]


def compile_all(*, force: bool = False) -> list[str]:
    """Compile each .po whose .mo is missing or older; returns one sentence for each that cannot be."""
    problems = []
    for source in catalogue_files():
        target = source.with_suffix(".mo")
        if not force and target.exists() and target.stat().st_mtime >= source.stat().st_mtime:
            continue
        try:
            with source.open("rb") as file:
                catalogue = read_po(file, locale=LOCALE, abort_invalid=True)
            temporary = target.with_suffix(".mo.part")
            with temporary.open("wb") as file:
                write_mo(file, catalogue)
            temporary.replace(target)
        except (PoFileError, OSError) as error:
            problems.append(f"The catalogue {source} cannot be compiled: {error}.")
    return problems
