"""Attachments: kinds by content, the limit, the name."""

from typing import Any

import pytest

from pocs.common.errors import InvalidInput
from pocs.evidence.files import check_upload, plain_name
from tests.pocs.evidence.conftest import PNG, upload


@pytest.mark.parametrize(
    ("name", "content", "content_type"),
    [
        ("report.PDF", b"%PDF-1.7\n...", "application/pdf"),
        ("chart.png", PNG, "image/png"),
        ("photo.jpeg", b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        ("summary.json", b'{"n": 4}', "application/json"),
        ("rows.csv", "租户,n\n甲,4\n".encode(), "text/csv; charset=utf-8"),
        ("server.log", b"\x1b[31merror\x1b[0m\tline\r\n", "text/plain; charset=utf-8"),
        ("values.yaml", b"max_batch: 8\n", "text/plain; charset=utf-8"),
    ],
)
def test_accepted_kinds(name: str, content: bytes, content_type: str) -> None:
    checked = check_upload(upload(name, content))
    assert (checked.name, checked.content_type, checked.size_bytes) == (name, content_type, len(content))


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("page.html", b"<script>alert(1)</script>", "content_type"),
        ("tool.exe", b"MZ\x90", "content_type"),
        ("archive.rar", b"Rar!", "content_type"),
        ("archive.zip", b"no archive", "content_type"),
        ("noending", b"text", "content_type"),
        ("report.pdf", b"<html>not a pdf</html>", "content_type"),
        ("chart.png", b"%PDF-1.7", "content_type"),
        ("summary.json", b"{not json", "content_type"),
        ("deep.json", b"[" * 100_000, "content_type"),
        ("server.log", b"binary \x00 inside", "content_type"),
        ("server.log", b"latin \xe9t\xe9", "content_type"),
        ("server.log", "cut in a character 甲".encode()[:-1], "content_type"),
        ("empty.txt", b"", "empty"),
    ],
)
def test_refused_kinds(name: str, content: bytes, code: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        check_upload(upload(name, content))
    assert [(wrong.pointer, wrong.code) for wrong in refusal.value.errors] == [("/file", code)]
    assert name in str(refusal.value)


def test_a_character_cut_by_a_chunk_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pocs.evidence.content.CHUNK_BYTES", 4)
    assert check_upload(upload("server.log", "队列等待 12 ms".encode())).size_bytes == 18


def test_the_limit(settings: Any) -> None:
    settings.PHASEGATE_ATTACHMENT_MAX_BYTES = 100
    check_upload(upload("server.log", b"x" * 100))
    with pytest.raises(InvalidInput, match="larger than the 100") as refusal:
        check_upload(upload("server.log", b"x" * 101))
    assert refusal.value.errors[0].code == "too_large"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd.txt", "passwd.txt"),
        ("C:\\Users\\a\\log.txt", "log.txt"),
        ("a\x00b\nc.txt", "abc.txt"),
        ("invoice\u202etxt.exe", "invoicetxt.exe"),
        ("", "file"),
        ("日志.log", "日志.log"),
    ],
)
def test_names_are_plain(given: str, kept: str) -> None:
    assert plain_name(given) == kept


def test_long_names_keep_their_ending() -> None:
    assert plain_name("x" * 300 + ".pdf") == "x" * 196 + ".pdf"
