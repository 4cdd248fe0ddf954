"""The check that docs/proof.md shows refuses every change of a release."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ppdm_core.model.manifest import NAME, sign
from tests.support.shown_check import run_shown_check

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of a published version, with the key of its steward beside it."""
    shutil.copyfile(FIXTURES / "published.pem", tmp_path / "steward.pem")
    return Path(shutil.copytree(FIXTURES / "published", tmp_path / "small" / "0001"))


def flip_last_bit(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)


def sign_with_other_key(folder: Path) -> None:
    manifest = json.loads((folder / NAME).read_text())
    body = {name: manifest[name] for name in manifest if name not in ("digest", "signature")}
    (folder / NAME).write_bytes(sign(body, Ed25519PrivateKey.from_private_bytes(bytes(32))))


def edit_manifest(folder: Path, old: str, new: str) -> None:
    text = (folder / NAME).read_text()
    assert old in text
    (folder / NAME).write_text(text.replace(old, new, 1))


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "data": (lambda folder: flip_last_bit(folder / "data.parquet"), "data.parquet was changed"),
    "card": (lambda folder: flip_last_bit(folder / "card.md"), "card.md was changed"),
    "a space": (lambda folder: edit_manifest(folder, ",", ", "), "manifest.json was changed"),
    "a field": (lambda folder: edit_manifest(folder, "partners", "all"), "manifest.json was"),
    "the digest": (
        lambda folder: edit_manifest(folder, '"digest":"', '"digest":"0'),
        "was changed",
    ),
    "a key twice": (
        lambda folder: edit_manifest(folder, '"format":2', '"format":2,"format":2'),
        "manifest.json was changed",
    ),
    "another key": (sign_with_other_key, "InvalidSignature"),
    "one file more": (lambda folder: (folder / "x").write_text(""), "x was changed, added"),
    "one file less": (lambda folder: (folder / "card.md").unlink(), "card.md was changed, added"),
    "swapped files": (
        lambda folder: shutil.copyfile(folder / "card.md", folder / "data.parquet"),
        "data.parquet was changed",
    ),
}


def test_shown_check_untouched_release_accepted(copy: Path) -> None:
    done = run_shown_check(copy.parents[1])
    assert (done.returncode, done.stdout) == (0, "every byte is as it was signed\n"), done.stderr


@pytest.mark.extended
@pytest.mark.parametrize("what", CHANGES)
def test_shown_check_changed_copy_refused(copy: Path, what: str) -> None:
    change, why = CHANGES[what]
    change(copy)
    done = run_shown_check(copy.parents[1])
    assert done.returncode == 1 and why in done.stderr
