"""The embedded profile's own key."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from phasegate.secrets import stored_secret_key


def test_key_is_made_once_and_private(tmp_path: Path) -> None:
    first = stored_secret_key(tmp_path / "var")
    assert stored_secret_key(tmp_path / "var") == first
    assert len(first) >= 50
    assert (tmp_path / "var" / "secret-key").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in (tmp_path / "var").iterdir()) == ["secret-key"]


def test_a_cut_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret-key").write_text("abc")
    with pytest.raises(ImproperlyConfigured, match="too short"):
        stored_secret_key(tmp_path)


def test_an_unusable_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ImproperlyConfigured, match="PHASEGATE_VAR"):
        stored_secret_key(tmp_path / "file")
