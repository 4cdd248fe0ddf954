"""Verify and load the folder of a released version; needs nothing private."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.manifest import (
    NAME,
    STEWARD_KEY,
    Verified,
    check_release,
    check_signature,
    parse_manifest,
    parse_public_key,
)
from ppdm_core.model.withdrawal import NOTICE_NAME, Notice, check_notice

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from numpy.typing import ArrayLike, NDArray

    from ppdm_core.model.arrays import Floats
    from ppdm_core.published import Published

DATA_NAME = "data.parquet"
LATEST = "latest"  # name of the link to the newest version


def verify(folder: str | Path, public_key: str | Path | None = None) -> Verified:
    """Check that every byte of a released version is as it was published.

    ``public_key`` is the file that the steward made with ``ppdm key public``. Get it by another
    way than the folder. Without it, the files only belong together: any person could have made
    them, and ``is_checked`` of the result is False.

    Raises ``Refused`` if a byte differs, a file is missing or added, the key is another one, the
    folder is named as another version, a newer version lies beside ``latest``, or the version was
    withdrawn.

    >>> found = ppdm.verify("published/small/0001", "steward.pem")
    >>> found.is_checked, found.manifest["rows"]
    (True, 79)
    """
    key = None if public_key is None else read_public_key(Path(public_key))
    return verify_folder(Path(folder), key)


def load(folder: str | Path, public_key: str | Path | None = None) -> LoadedRelease:
    """Verify a released version as ``verify`` does, and read its table and public parameters.

    >>> release = ppdm.load("published/small/0001", "steward.pem")
    >>> list(release.table.columns)
    ['component_1', 'mood']
    >>> model = release.make_miner("noise_aware").fit(release.rows, release.labels)
    >>> own = {"height": [3.0], "weight": [3.1], "pulse": [2.9], "iron": [3.0]}
    >>> model.predict(release.queries(own)).tolist()
    ['calm']
    """
    import pandas as pd

    from ppdm_core.published import Published

    found = verify(folder, public_key)
    path = find_folder(Path(folder))
    if DATA_NAME not in found.manifest["files"]:
        raise unreadable_error(path, f"There is no {DATA_NAME} in it.")
    try:
        published = Published.from_manifest(found.manifest)
    except (KeyError, TypeError, ValueError):
        raise unreadable_error(path, f"Its {NAME} has another format.") from None
    table = pd.read_parquet(path / DATA_NAME)
    return LoadedRelease(table, published, found.manifest, found.signer, found.is_checked)


@dataclass(frozen=True, eq=False)
class LoadedRelease:
    """A released table with its public parameters, in the form that miners take."""

    table: pd.DataFrame  # as it was published
    published: Published
    manifest: Mapping[str, Any]
    signer: str | None  # fingerprint of the key that the manifest names; None: it is unsigned
    is_checked: bool  # the signature is by the key that was given

    @cached_property
    def rows(self) -> Floats:
        """The released numbers in the space of ``queries``, one row for each record."""
        return self.published.rows(self.table)

    @property
    def labels(self) -> NDArray[np.object_] | None:
        """The class of each row, or None if the release has no label."""
        label = self.published.label
        return None if label is None else self.table[label].to_numpy(dtype=object)

    def queries(self, records: ArrayLike) -> Floats:
        """Return your own records, in original units, in the space of ``rows``.

        ``records`` is a data frame or dict that has the columns ``published.numeric`` by name, or
        an array of exactly these, in this order. Values beyond the bounds are moved to them, as
        in the release. Raises ``BadInput`` for other columns and for NaN, and ``NotApplicable``
        if the release publishes no map.
        """
        return self.published.queries(records)

    def make_miner(self, name: str, *arguments: Any, **parameters: Any) -> Any:
        """Return a miner for this release; docs/mining.md lists them with their parameters."""
        from ppdm_core.miners import MINERS
        from ppdm_core.settings.errors import check_known

        check_known("miner", name, MINERS)
        return MINERS[name].from_public(self.published.public, *arguments, **parameters)


def verify_folder(path: Path, key: Ed25519PublicKey | None = None) -> Verified:
    """Return the release in a folder, if every byte is as it was published.

    Of a published folder the name is checked, too: a version under the number of another one, or
    `latest` beside a newer version, is refused.
    """
    folder = find_folder(path)
    notice = read_notice(folder, key)
    if notice is not None:
        raise notice.as_error(folder)
    found = verify_files(folder, key)
    check_folder_name(folder, found.manifest["release_id"])
    newer = find_newer_version(folder, found, key)
    if folder.name == LATEST and newer is not None:
        raise Refused(
            f"`{LATEST}` holds {found.manifest['release_id']}, and {newer}, which is newer, lies "
            "beside it.",
            file=str(folder),
            remedy=f"Use {newer}, and tell the steward that `{LATEST}` does not point to it.",
        )
    return found


def find_folder(path: Path) -> Path:
    """Return the folder of a release, given the folder itself, its manifest or its notice."""
    return path.parent if path.name in (NAME, NOTICE_NAME) else path


def read_notice(folder: Path, key: Ed25519PublicKey | None = None) -> Notice | None:
    """Return the notice that is in the place of a withdrawn version; None if there is none."""
    source = folder / NOTICE_NAME
    if (folder / NAME).is_file() or not source.is_file():
        return None
    names = {entry.name for entry in folder.iterdir()}
    notice = check_notice(folder, source.read_bytes(), names, key)
    check_folder_name(folder, notice.release_id)
    return notice


def check_folder_name(folder: Path, release_id: str) -> None:
    """Check that a folder is not named as another version of the same dataset."""
    place = folder.absolute()
    dataset, number = split_release_id(release_id)
    is_version = place.parent.name == dataset and place.name.isdecimal()
    if is_version and int(place.name) != number:
        raise Refused(
            f"The folder {place.parent.name}/{place.name} holds another version: {release_id}.",
            file=str(folder),
            remedy="Do not use this copy; ask the steward for a new one.",
        )


def find_newer_version(
    folder: Path, found: Verified, key: Ed25519PublicKey | None = None
) -> str | None:
    """Return the newest release of the same dataset beside a folder, None if none is newer.

    A folder counts if its manifest is as it was written and, if a key is given, signed with it.
    """
    dataset, newest = split_release_id(found.manifest["release_id"])
    name = None
    for source in folder.absolute().parent.glob(f"[!.]*/{NAME}"):  # no draft
        try:
            manifest = parse_manifest(source, source.read_bytes())
            if key is not None:
                check_signature(source, manifest, key)
        except (Refused, OSError):
            continue
        other, number = split_release_id(manifest["release_id"])
        if other == dataset and number > newest:
            name, newest = manifest["release_id"], number
    return name


def split_release_id(release_id: str) -> tuple[str, int]:
    """Return dataset and number of a release id: "wine-0003" is ("wine", 3)."""
    dataset, _, number = release_id.rpartition("-")
    return dataset, int(number) if number.isdecimal() else 0


def verify_files(folder: Path, key: Ed25519PublicKey | None) -> Verified:
    """Return the release in a folder, if every byte is as its manifest says."""

    def find_digest(name: str) -> str | None:
        if not (folder / name).is_file():
            return None
        with (folder / name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    source = folder / NAME
    raw = source.read_bytes() if source.is_file() else None
    names = set() if raw is None else {entry.name for entry in folder.iterdir()}
    return check_release(folder, raw, names, find_digest, key)


def read_public_key(path: Path, remedy: str = STEWARD_KEY) -> Ed25519PublicKey:
    """Return the public key in a PEM file."""
    try:
        pem = path.read_bytes()
    except OSError:
        pem = b""  # reported as every other file that holds no key
    return parse_public_key(path, pem, remedy)


def unreadable_error(folder: Path, what: str) -> BadInput:
    """Return the error of a release that this version cannot read."""
    return BadInput(
        f"The release in {folder} cannot be loaded. {what}",
        file=str(folder),
        remedy="Load it with the version of ppdm that made it.",
    )
