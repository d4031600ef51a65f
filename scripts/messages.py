"""Translation catalogues: extract messages, merge translations, check that nothing is missing.

    scripts/messages.py extract             update every .po file from the sources (needs gettext)
    scripts/messages.py merge FILE.json …   fill in translations from flat objects {msgid: msgstr}
    scripts/messages.py check               fail where a message of the sources has no translation

In the JSON a plural message stands under its singular, one with a context under "context|msgid".
"""

import argparse
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parent.parent
LOCALE = "zh_Hans"
SOURCES = ("pocs", "platform", "templates", "manage.py")
#: without dates and names, so that a diff shows translations only
HEADER = f"""\
# Simplified Chinese translation of PhaseGate.
msgid ""
msgstr ""
"Language: {LOCALE}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: nplurals=1; plural=0;\\n"

"""
#: Django's extraction with settings of its own: the site need not start, and a copy stays a copy
_MAKEMESSAGES = """
import sys, django
from django.conf import settings
from django.core.management import call_command
root, locale = sys.argv[1:]
settings.configure(USE_I18N=True, LOCALE_PATHS=[root + "/templates/locale"])
django.setup()
ignored = [name + "/*" for name in ("var", "tests", "inference", ".venv", "docs", "scripts")]
call_command("makemessages", locale=[locale], extensions=["py,html,txt"], ignore_patterns=ignored,
             no_wrap=True, no_location=True, no_obsolete=True, verbosity=0)
"""
_PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%%|%[sd]|\{\w*\}")


def catalogue_files(root: Path) -> list[Path]:
    """Every catalogue: one of each app, one of the templates and the rest."""
    found = sorted(root.glob(f"pocs/*/locale/{LOCALE}/LC_MESSAGES/django.po"))
    return [*found, root / "templates" / "locale" / LOCALE / "LC_MESSAGES" / "django.po"]


def extract(root: Path) -> None:
    """Update the catalogues below `root` from its sources, each file into the nearest locale folder."""
    for app in sorted((root / "pocs").iterdir()):
        if (app / "apps.py").exists():
            (app / "locale" / LOCALE / "LC_MESSAGES").mkdir(parents=True, exist_ok=True)
    (root / "templates" / "locale" / LOCALE / "LC_MESSAGES").mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-P", "-c", _MAKEMESSAGES, str(root), LOCALE]
    subprocess.run(command, cwd=root, check=True)
    for path in catalogue_files(root):
        if path.exists():
            write(path, read(path))


def read(path: Path) -> Catalog:
    text = path.read_text(encoding="utf-8")
    # Chinese has one plural form; the extraction leaves two empty ones in a new catalogue
    text = re.sub(r'^msgstr\[1\] ""\n', "", text, flags=re.MULTILINE)
    return read_po(io.StringIO(text), locale=LOCALE)


def write(path: Path, catalogue: Catalog) -> None:
    """Write in one stable form: sorted, without dates and places, so that a diff shows translations."""
    fresh = Catalog(locale=LOCALE, fuzzy=False)
    for message in catalogue:
        if message.id:
            fresh.add(
                message.id,
                message.string,
                flags=message.flags,
                auto_comments=message.auto_comments,
                user_comments=message.user_comments,
                context=message.context,
            )
    with path.open("wb") as file:
        file.write(HEADER.encode())
        write_po(file, fresh, width=0, omit_header=True, sort_output=True, ignore_obsolete=True)


def key_of(message: Message) -> str:
    singular = message.id if isinstance(message.id, str) else message.id[0]
    return f"{message.context}|{singular}" if message.context else singular


def merge(root: Path, translations: dict[str, str]) -> set[str]:
    """Set the translations in every catalogue that has their message; returns keys that no catalogue has."""
    unused = set(translations)
    for path in catalogue_files(root):
        catalogue = read(path)
        for message in catalogue:
            if not message.id:
                continue
            key = key_of(message)
            if message.context and key not in translations:
                key = key.removeprefix(f"{message.context}|")
            text = translations.get(key)
            if text is None:
                continue
            unused.discard(key)
            message.string = text if isinstance(message.id, str) else (text,)
            message.flags.discard("fuzzy")
        write(path, catalogue)
    return unused


def problems_of(path: Path) -> list[str]:
    """One line for each message that is untranslated, uncertain, or whose placeholders differ."""
    problems = []
    for message in read(path):
        if not message.id:
            continue
        strings = [message.string] if isinstance(message.string, str) else list(message.string)
        name = key_of(message)
        if not all(strings):
            problems.append(f"no translation: {name!r}")
        elif message.fuzzy:
            problems.append(f"fuzzy: {name!r}")
        else:
            plural = message.id if isinstance(message.id, str) else message.id[-1]
            wanted = sorted(_PLACEHOLDER.findall(plural))
            if any(sorted(_PLACEHOLDER.findall(text)) != wanted for text in strings):
                problems.append(f"placeholders differ: {name!r}")
    return problems


def check(root: Path) -> list[str]:
    """Extract in a copy, so that the checkout stays as it is, and list what is missing there."""
    with tempfile.TemporaryDirectory(prefix="phasegate-messages-") as folder:
        copy = Path(folder)
        for name in SOURCES:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.mo"))
            else:
                shutil.copy2(source, copy / name)
        extract(copy)
        found = []
        for path in catalogue_files(copy):
            if path.exists():
                found += [f"{path.relative_to(copy)}: {problem}" for problem in problems_of(path)]
        return found


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("extract")
    commands.add_parser("check")
    commands.add_parser("merge").add_argument("files", nargs="+", type=Path)
    arguments = parser.parse_args()
    if arguments.command != "merge" and shutil.which("xgettext") is None:
        print("xgettext was not found: install gettext.", file=sys.stderr)
        return 1
    if arguments.command == "extract":
        extract(ROOT)
    elif arguments.command == "merge":
        translations: dict[str, str] = {}
        for path in arguments.files:
            translations |= json.loads(path.read_text())
        for key in sorted(merge(ROOT, translations)):
            print(f"no catalogue has: {key!r}")
    else:
        problems = check(ROOT)
        print("\n".join(problems) or "Every message is translated.")
        return 1 if problems else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
