"""The check that the published folders are those that the warehouse records.

A version that the history lacks shows that `private` was replaced by an earlier copy, as long as
its folder is there. A folder that is gone is no evidence: the steward may have removed it. In place
of a withdrawn version there is its notice.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppdm_core.model.errors import Refused
from ppdm_core.model.manifest import NAME, parse_manifest
from ppdm_core.model.withdrawal import NOTICE_NAME
from warehouse.home import Home
from warehouse.integrity.seals import integrity_error
from warehouse.publishing.manifest import file_digest
from warehouse.publishing.version_folders import LATEST
from warehouse.publishing.withdraw import Withdrawal, list_withdrawals
from warehouse.tables import EVENTS, RUNS, VERSIONS
from warehouse.transaction import Transaction

REPAIR = "If a run was killed, release again, which repairs it; else find out who did it."


@dataclass(frozen=True)
class RecordedVersion:
    """A version that the warehouse records as published."""

    dataset: str
    number: int
    release_id: str
    manifest_digest: str

    @property
    def folder_name(self) -> str:
        return f"{self.number:04d}"


def check_known_folders(db: Transaction) -> None:
    """Check that the history knows every published folder.

    A folder without a recorded version is that of a killed run, whose manifest names an event of
    this history; else `private` is an earlier copy, and the next release would replace the folder.
    """
    runs = {name for (name,) in db.execute(f"select release_id from {RUNS}").fetchall()}
    recorded = {version.release_id for version in list_versions(db)}
    for release_id, folder in list_version_folders(db.home).items():
        if release_id not in runs or not (release_id in recorded or is_of_history(db, folder)):
            raise integrity_error(f"{release_id} is published, and the history does not know it.")


def is_of_history(db: Transaction, folder: Path) -> bool:
    """Return whether the manifest in a folder names an event of this history."""
    path = folder / NAME
    try:
        named: Any = parse_manifest(path, path.read_bytes()).get("history")
        number, mac = int(named["event"]), named["mac"]
    except (OSError, Refused, KeyError, TypeError, ValueError):
        return False
    found = db.execute(f"select mac from {EVENTS} where number = ?", [number]).fetchall()
    return found == [(mac,)]


def check_published(db: Transaction) -> int:
    """Check folders, manifests and `latest` links of all versions; return how many there are."""
    withdrawn = {each.release_id: each for each in list_withdrawals(db)}
    folders = list_version_folders(db.home)
    for withdrawal in withdrawn.values():
        check_notice_folder(db.home, withdrawal)
        folders.pop(withdrawal.release_id, None)
    versions = [each for each in list_versions(db) if each.release_id not in withdrawn]
    digests = {version.release_id: version.manifest_digest for version in versions}
    for version in versions:  # also a folder that lost its manifest
        folder = db.home.published / version.dataset / version.folder_name
        if folder.is_dir():
            folders[version.release_id] = folder
    for release_id, folder in folders.items():
        check_no_link(db.home, release_id, folder)
        if release_id not in digests:
            raise Refused(
                f"The folder of {release_id} is published, and no version is recorded for it.",
                file=str(folder),
                remedy=REPAIR,
            )
        manifest = folder / NAME
        if not manifest.is_file() or file_digest(manifest) != digests[release_id]:
            raise integrity_error(
                f"The published manifest of {release_id} is not the one that was signed."
            )
    for dataset in sorted({version.dataset for version in versions}):
        check_latest(db.home, dataset, [each for each in versions if each.dataset == dataset])
    return len(folders)


def check_notice_folder(home: Home, withdrawal: Withdrawal) -> None:
    """Check that only the signed notice is in the place of a withdrawn version."""
    release_id = withdrawal.release_id
    folder = home.published / withdrawal.dataset / withdrawal.folder_name
    check_no_link(home, release_id, folder)
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    if names != [NOTICE_NAME] or file_digest(folder / NOTICE_NAME) != withdrawal.notice:
        raise Refused(
            f"{release_id} was withdrawn, and its folder does not hold the notice alone.",
            file=str(folder),
            remedy="Remove the folder; the next command writes the notice again.",
        )


def check_no_link(home: Home, release_id: str, folder: Path) -> None:
    """Check that the folder of a version, and that of its dataset, is not replaced by a link."""
    for path in (folder.parent, folder):
        if path.is_symlink():
            raise Refused(
                f"{path.relative_to(home.root)} is a link, not the folder that {release_id} was "
                "published in.",
                file=str(path),
                remedy="Remove the link, and restore the folder from a copy.",
            )


def check_latest(home: Home, dataset: str, versions: list[RecordedVersion]) -> None:
    """Check that `latest` points to the newest of a dataset's versions, which go by number.

    Where the folder of the newest version was removed, the newest that is left is right, too.
    """
    folder = home.published / dataset
    left = [each for each in versions if (folder / each.folder_name).is_dir()]
    if not left:
        return
    link = folder / LATEST
    target = os.readlink(link) if link.is_symlink() else None
    if target not in (versions[-1].folder_name, left[-1].folder_name):
        found = "is no link" if target is None else f"points to {target}"
        raise Refused(
            f"`{LATEST}` of {dataset} {found}, and the newest version is {left[-1].folder_name}.",
            file=str(link),
            remedy=REPAIR,
        )


def list_versions(db: Transaction) -> list[RecordedVersion]:
    """Return every recorded version, by dataset and number."""
    rows = db.execute(
        f"select dataset, number, release_id, manifest_digest from {VERSIONS} "
        "order by dataset, number"
    ).fetchall()
    return [RecordedVersion(*row) for row in rows]


def list_version_folders(home: Home) -> dict[str, Path]:
    """Return every published folder with a manifest, by release id."""
    folders = [path.parent for path in sorted(home.published.glob(f"*/[0-9]*/{NAME}"))]
    return {f"{folder.parent.name}-{folder.name}": folder for folder in folders}
