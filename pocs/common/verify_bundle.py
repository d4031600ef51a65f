"""Check a project's file that PhaseGate exported, without PhaseGate: Python's standard library alone.

    python verify.py BUNDLE.zip [--key BASE64] [--json]

What is checked: every file of the archive by size and SHA-256, and that there is no other; the
signature of the list of files; each package's manifest by its digest, and every evidence, attachment
and run that it names by theirs; each signature by the digest it binds to and by its audit entry; the
audit slice, entry by entry and link by link; the signed checkpoints of the chain. With --key only
signatures of that Ed25519 key count: take it from the audit page of the installation.

Exit status: 0 everything holds, 1 something does not, 2 the archive cannot be read.
"""

import argparse
import base64
import binascii
import hashlib
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

SCHEMA = "phasegate-bundle/1"
GENESIS = "0" * 64
LIST = "bundle.json"
APPROVALS = ("approved", "approved_with_conditions")
#: states of a signature that a person gave, whatever became of it
SIGNED = (*APPROVALS, "rejected")


# -- Ed25519 (RFC 8032, 5.1.7), for checking only: nothing here is secret ---------------------------------

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)
Point = tuple[int, int, int, int]


def _add(a: Point, b: Point) -> Point:
    s, t = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    u, v = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = t - s, v - u, v + u, t + s
    return e * f % P, g * h % P, f * g % P, e * h % P


def _multiply(number: int, point: Point) -> Point:
    found: Point = (0, 1, 1, 0)
    while number > 0:
        if number & 1:
            found = _add(found, point)
        point = _add(point, point)
        number >>= 1
    return found


def _x_of(y: int, sign: int) -> int | None:
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P)
    if square % P == 0:
        return None if sign else 0
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P:
        return None
    return P - x if x & 1 != sign else x


def _point(octets: bytes) -> Point | None:
    y = int.from_bytes(octets, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    x = _x_of(y, sign)
    return None if x is None else (x, y, 1, x * y % P)


_BASE_Y = 4 * pow(5, P - 2, P) % P
_BASE_X = _x_of(_BASE_Y, 0) or 0
BASE: Point = (_BASE_X, _BASE_Y, 1, _BASE_X * _BASE_Y % P)


def ed25519_holds(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `signature` (64 bytes) of `message` is one of the public `key` (32 bytes)."""
    if len(key) != 32 or len(signature) != 64:
        return False
    public, commitment = _point(key), _point(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if public is None or commitment is None or scalar >= ORDER:
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    left, right = _multiply(scalar, BASE), _add(commitment, _multiply(challenge, public))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 and (
        left[1] * right[2] - right[1] * left[2]
    ) % P == 0


# -- the forms that are hashed ----------------------------------------------------------------------------


def canonical(value: Any) -> bytes:
    """The one byte form that PhaseGate takes digests and signatures over."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def sha256(octets: bytes) -> str:
    return hashlib.sha256(octets).hexdigest()


def signature_holds(statement: Any, key: str, signature: str) -> bool:
    """Whether a signature, both in base64, is one of `key` over the canonical statement."""
    try:
        return ed25519_holds(base64.b64decode(key), canonical(statement), base64.b64decode(signature))
    except (binascii.Error, ValueError, TypeError):
        return False


# -- the archive ------------------------------------------------------------------------------------------


class Unreadable(Exception):
    """The archive, or its list of files, is none."""


class Bundle:
    """The files of an archive or folder, and what was found wrong with them."""

    def __init__(self, path: Path, key: str = "") -> None:
        self.problems: list[str] = []
        self.checked: dict[str, int] = {}
        self.files = _read(path)
        try:
            self.list: dict[str, Any] = json.loads(self.files[LIST])
        except (KeyError, ValueError) as error:
            raise Unreadable(f"there is no {LIST} that can be read") from error
        if self.list.get("schema") != SCHEMA:
            raise Unreadable(f"{LIST} is not of schema {SCHEMA}")
        self.key = key or str(self.list.get("key", ""))
        self.entries: dict[int, dict[str, Any]] = {}

    def wrong(self, text: str) -> None:
        self.problems.append(text)

    def count(self, what: str, number: int = 1) -> None:
        self.checked[what] = self.checked.get(what, 0) + number

    def json(self, name: str, default: Any = None) -> Any:
        if name not in self.files:
            self.wrong(f"{name} is missing")
            return default
        try:
            return json.loads(self.files[name])
        except ValueError:
            self.wrong(f"{name} cannot be read as JSON")
            return default


def _read(path: Path) -> dict[str, bytes]:
    try:
        if path.is_dir():
            found = [entry for entry in sorted(path.rglob("*")) if entry.is_file()]
            return {entry.relative_to(path).as_posix(): entry.read_bytes() for entry in found}
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            if len(set(names)) != len(names):
                raise Unreadable("the archive holds two files of one name")
            return {name: archive.read(name) for name in names}
    except (OSError, zipfile.BadZipFile) as error:
        raise Unreadable(str(error)) from error


# -- the checks -------------------------------------------------------------------------------------------


def check_files(bundle: Bundle) -> None:
    """The list names every file with its size and digest, and is signed."""
    listed = {entry["path"]: entry for entry in bundle.list.get("files", [])}
    for name, entry in listed.items():
        octets = bundle.files.get(name)
        if octets is None:
            bundle.wrong(f"{name} is listed and missing")
        elif len(octets) != entry["size_bytes"] or sha256(octets) != entry["sha256"]:
            bundle.wrong(f"{name} is not the file that was exported")
    for name in sorted(set(bundle.files) - set(listed) - {LIST}):
        bundle.wrong(f"{name} is in the archive and not listed")
    bundle.count("files", len(listed))
    statement = {name: value for name, value in bundle.list.items() if name not in ("key", "signature")}
    if bundle.key != bundle.list.get("key"):
        bundle.wrong("the list of files is signed by another key than the one given")
    elif not signature_holds(statement, bundle.key, str(bundle.list.get("signature", ""))):
        bundle.wrong("the signature of the list of files does not hold")


def check_audit(bundle: Bundle) -> None:
    """Every entry has its own hash, follows the one before, and the signed checkpoints lie on the chain."""
    previous, length, hashes = GENESIS, 0, {0: GENESIS}
    for line in bundle.files.get("audit/chain.jsonl", b"").splitlines():
        entry = json.loads(line)
        payload = entry.get("payload")
        number = entry["sequence"]
        if number != length + 1:
            bundle.wrong(f"audit: entries {length + 1} to {number - 1} are missing")
        if entry["previous"] != previous:
            bundle.wrong(f"audit: entry {number} does not follow the one before it")
        if payload is not None:
            if sha256(canonical(payload)) != entry["hash"]:
                bundle.wrong(f"audit: entry {number} was changed")
            if payload["sequence"] != number or payload["previous"] != entry["previous"]:
                bundle.wrong(f"audit: entry {number} is not at its place")
            bundle.entries[number] = payload
            bundle.count("audit entries")
        previous, length = entry["hash"], number
        hashes[number] = entry["hash"]
    bundle.count("links of the chain", length)
    _check_checkpoints(bundle, hashes, length)


def _check_checkpoints(bundle: Bundle, hashes: dict[int, str], length: int) -> None:
    furthest = 0
    for line in bundle.files.get("audit/checkpoints.jsonl", b"").splitlines():
        point = json.loads(line)
        statement = {name: point[name] for name in ("organisation", "length", "head", "at")}
        if point["key"] != bundle.key or not signature_holds(statement, point["key"], point["signature"]):
            bundle.wrong(f"audit: the checkpoint of {point['length']} entries is not signed by the key")
            continue
        if point["length"] > length:
            bundle.wrong(f"audit: a checkpoint covers {point['length']} entries, the chain has {length}")
        elif hashes.get(point["length"]) != point["head"]:
            bundle.wrong(f"audit: entry {point['length']} is not the one that its checkpoint names")
        else:
            furthest = max(furthest, point["length"])
        bundle.count("checkpoints")
    if bundle.entries and furthest < max(bundle.entries):
        bundle.wrong("audit: no signed checkpoint covers the newest entries of the project")


def check_packages(bundle: Bundle) -> None:
    """Manifests, what they name, and the signatures that bind to their digests."""
    project = bundle.json("project.json", {})
    for number in project.get("packages", []):
        package = bundle.json(f"packages/P{number}/package.json")
        octets = bundle.files.get(f"packages/P{number}/manifest.json")
        if package is None or octets is None:
            bundle.wrong(f"package {number}: its manifest is missing")
            continue
        if sha256(octets) != package["digest"]:
            bundle.wrong(f"package {number}: its manifest is not the one that its digest names")
        _audited(bundle, f"package {number}", "package.frozen", "reviews.package", package)
        _check_content(bundle, number, json.loads(octets))
        _check_signatures(bundle, number, package, json.loads(octets))
        bundle.count("packages")


def _check_content(bundle: Bundle, number: int, manifest: dict[str, Any]) -> None:
    for entry in manifest["evidence"]:
        name = f"evidence/{entry['id']}/r{entry['revision']}.json"
        octets = bundle.files.get(name)
        if octets is None or sha256(octets) != entry["sha256"]:
            bundle.wrong(f"package {number}: {name} is not the evidence that was frozen")
        for item in entry["attachments"]:
            stored = bundle.files.get(f"attachments/{item['sha256']}")
            if stored is None or sha256(stored) != item["sha256"]:
                bundle.wrong(f"package {number}: the file “{item['name']}” of {name} is lost or changed")
            bundle.count("attachments")
        bundle.count("evidence revisions")
    for run in manifest["runs"]:
        stored = bundle.json(f"runs/R{run['number']}.json", {})
        for part, digest in (("manifest", run["records_sha256"]), ("summary", run["summary_sha256"])):
            if digest is not None and sha256(canonical(stored.get(part))) != digest:
                bundle.wrong(f"package {number}: the {part} of run {run['number']} is not the one frozen")
        bundle.count("runs")


def _check_signatures(bundle: Bundle, number: int, package: dict[str, Any], manifest: dict[str, Any]) -> None:
    standing: dict[str, set[int]] = {}
    for row in package["signatures"]:
        if row["signed_at"] is None:
            continue
        what = f"package {number}: the {row['slot']} signature of {row['signed_as']}"
        if row["digest"] != package["digest"]:
            bundle.wrong(f"{what} binds to another digest")
        _audited(bundle, what, f"signoff.{row['verdict']}", "reviews.signoff", row)
        if row["state"] in APPROVALS:
            people = standing.setdefault(row["slot"], set())
            people.add(row["signer"])
        bundle.count("signatures")
    if package["state"] != "approved":
        return
    for slot, asked in manifest["policy"]["signatures"].items():
        if len(standing.get(slot, ())) < asked["quorum"]:
            bundle.wrong(f"package {number}: it counts as approved and lacks a signature of {slot}")
    everybody = [person for people in standing.values() for person in people]
    if len(everybody) != len(set(everybody)):
        bundle.wrong(f"package {number}: one person signed two slots")


def _audited(bundle: Bundle, what: str, verb: str, kind: str, row: dict[str, Any]) -> None:
    """The audit slice must hold the entry of this act, with the same digest and the same person."""
    for payload in bundle.entries.values():
        if (payload["verb"], payload["object_type"], payload["object_id"]) != (verb, kind, str(row["id"])):
            continue
        if (payload["after"] or {}).get("digest") != row["digest"]:
            continue
        if "signer" in row and payload["actor"].get("user_id") != row["signer"]:
            bundle.wrong(f"{what} was given by someone else, says the audit")
        return
    bundle.wrong(f"{what} has no entry in the audit")


def verify(path: Path, key: str = "") -> Bundle:
    """All checks; raises Unreadable for what is no bundle."""
    bundle = Bundle(path, key)
    for check in (check_files, check_audit, check_packages):
        try:
            check(bundle)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            bundle.wrong(f"{check.__name__}: the archive is not of the expected form ({error!r})")
    return bundle


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Checks a project's file exported by PhaseGate.")
    parser.add_argument("bundle", type=Path, help="the archive, or the folder it was unpacked to")
    parser.add_argument("--key", default="", help="only signatures of this public key (base64) count")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    given = parser.parse_args(arguments)
    try:
        bundle = verify(given.bundle, given.key)
    except Unreadable as error:
        sys.stderr.write(f"{given.bundle}: {error}\n")
        return 2
    if given.json:
        result = {"holds": not bundle.problems, "checked": bundle.checked, "problems": bundle.problems}
        sys.stdout.write(json.dumps(result | {"key": bundle.key}, ensure_ascii=False, indent=2) + "\n")
        return 1 if bundle.problems else 0
    project = bundle.list.get("project", {})
    sys.stdout.write(f"{project.get('name', '?')}: exported {bundle.list.get('at', '?')}\n")
    sys.stdout.write("".join(f"  {number:>7} {what}\n" for what, number in bundle.checked.items()))
    sys.stdout.write("".join(f"  WRONG   {problem}\n" for problem in bundle.problems))
    trust = "as given" if given.key else "named by the archive itself; compare it with the audit page"
    sys.stdout.write(f"  key     {bundle.key} ({trust})\n")
    sys.stdout.write("everything holds\n" if not bundle.problems else f"{len(bundle.problems)} problems\n")
    return 1 if bundle.problems else 0


if __name__ == "__main__":
    sys.exit(main())
