"""What a recipient notices of published folders: which version a name stands for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import ppdm
from ppdm.cli.verify import verify_release
from ppdm.release_folder import verify_folder
from ppdm_core.model.errors import Refused
from ppdm_core.model.manifest import NAME, public_pem, sign
from warehouse.publishing.manifest import file_digest

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))


def write_version(folder: Path, release_id: str, key: Ed25519PrivateKey = KEY) -> Path:
    folder.mkdir(parents=True)
    (folder / "card.md").write_text(release_id)
    files = {"card.md": {"sha256": file_digest(folder / "card.md")}}
    body = {"release_id": release_id, "rows": 3, "files": files}
    (folder / NAME).write_bytes(sign(body, key))
    return folder


@pytest.fixture
def wine(tmp_path: Path) -> Path:
    """The published folder of a dataset with two versions."""
    for number in ("0001", "0002"):
        write_version(tmp_path / "wine" / number, f"wine-{number}")
    (tmp_path / "wine" / "latest").symlink_to("0002")
    (tmp_path / "steward.pem").write_bytes(public_pem(KEY.public_key()))
    return tmp_path / "wine"


def move_latest(wine: Path, target: str) -> Path:
    (wine / "latest").unlink()
    (wine / "latest").symlink_to(target)
    return wine / "latest"


@pytest.mark.parametrize("key", [None, KEY.public_key()], ids=["no key", "key"])
def test_verify_latest_points_to_older_version_refused(wine: Path, key: object) -> None:
    assert verify_folder(wine / "latest", key).manifest["release_id"] == "wine-0002"  # type: ignore[arg-type]
    latest = move_latest(wine, "0001")
    for path in (latest, latest / NAME):
        with pytest.raises(
            Refused, match="`latest` holds wine-0001, and wine-0002, which is newer"
        ):
            verify_folder(path, key)  # type: ignore[arg-type]


def test_verify_latest_copied_older_version_refused(wine: Path) -> None:
    """A download follows links: `latest` is a folder then."""
    (wine / "latest").unlink()
    shutil.copytree(wine / "0001", wine / "latest")
    with pytest.raises(Refused, match="`latest` holds wine-0001"):
        ppdm.verify(wine / "latest")
    with pytest.raises(Refused, match="`latest` holds wine-0001"):
        ppdm.load(wine / "latest")


def test_verify_older_version_by_number_names_newer(wine: Path, tmp_path: Path) -> None:
    found = verify_release(wine / "0001", tmp_path / "steward.pem")
    assert found.text.endswith("\nA newer version lies beside it: wine-0002.")
    assert found.payload["newer"] == "wine-0002"
    newest = verify_release(wine / "latest", tmp_path / "steward.pem")
    assert "newer" not in newest.text and newest.payload["newer"] is None


def test_verify_version_under_other_number_refused(wine: Path) -> None:
    shutil.rmtree(wine / "0002")
    shutil.copytree(wine / "0001", wine / "0002")
    for path in (wine / "0002", wine / "0002" / NAME):
        with pytest.raises(Refused, match="folder wine/0002 holds another version: wine-0001"):
            verify_folder(path)


def test_verify_folder_relative_path_refused(wine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (wine / "0002").rename(wine / "0003")
    monkeypatch.chdir(wine / "0003")
    with pytest.raises(Refused, match="folder wine/0003 holds another version: wine-0002"):
        verify_folder(Path())


def test_verify_recipients_own_names_accepted(wine: Path, tmp_path: Path) -> None:
    """A recipient may name folders as they like: by year, or all versions in one folder."""
    copy = Path(shutil.copytree(wine / "0001", tmp_path / "tables" / "2026"))
    assert verify_folder(copy).manifest["release_id"] == "wine-0001"


@pytest.mark.parametrize(
    "what", ["another key", "changed", "another dataset", "no manifest", "a draft"]
)
def test_find_newer_version_forged_folder_not_counted(wine: Path, what: str) -> None:
    """Whoever can write there must not be able to make a good version look old."""
    folder = wine / "0003"
    if what == "a draft":
        write_version(wine / ".0003.tmp", "wine-0003")
    elif what == "another key":
        write_version(folder, "wine-0003", OTHER)
    elif what == "another dataset":
        write_version(folder, "beer-0003")
    else:
        write_version(folder, "wine-0003")
        text = (folder / NAME).read_text()
        (folder / NAME).unlink()
        if what == "changed":
            body = {**json.loads(text), "rows": 4}
            (folder / NAME).write_text(json.dumps(body))
    assert verify_folder(wine / "latest", KEY.public_key()).is_checked
