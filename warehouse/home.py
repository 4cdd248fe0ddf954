"""The folder of one steward.

<home>/private/     0700: warehouse, keys, locks, work files of running releases
<home>/views/       what Prefect and MLflow show; holds no private value
<home>/published/   what outsiders may read
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ppdm_core.model.errors import BadInput, MachineTrouble

DATASET_NAME = r"^[a-z][a-z0-9_]{0,39}$"  # names of folders, files and tables follow from it
CLUSTER_RECORD = "cluster.json"  # in the folder of a cluster: its address and processes
WORK_NAME = re.compile(r"([a-z][a-z0-9_]{0,39})(-\d+)?")  # a dataset, or a release of it
REMOVE_SECONDS = 30.0  # a worker may be writing its last part to a folder that is removed
DISK_ERRORS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "permission is denied",
    errno.EIO: "the disk does not answer",
}


@dataclass(frozen=True)
class Home:
    """The paths below the folder of one steward."""

    root: Path

    @property
    def private(self) -> Path:
        return self.root / "private"

    @property
    def database(self) -> Path:
        return self.private / "warehouse.duckdb"

    @property
    def keys(self) -> Path:
        return self.private / "keys"

    @property
    def head(self) -> Path:
        """The file that records the last event of the history."""
        return self.private / "history.head"

    @property
    def locks(self) -> Path:
        return self.private / "locks"

    @property
    def views(self) -> Path:
        return self.root / "views"

    @property
    def published(self) -> Path:
        return self.root / "published"

    @property
    def hooks(self) -> Path:
        """The file of the commands that run when a release ends; it need not exist."""
        return self.root / "hooks.toml"

    @property
    def withdrawn(self) -> Path:
        """The folder of the versions that were withdrawn, made by the first withdrawal."""
        return self.private / "withdrawn"

    @property
    def cluster(self) -> Path:
        """The folder of the cluster that `ppdm cluster up` starts: its keys, record and logs."""
        return self.private / "cluster"

    def work(self, name: str) -> Path:
        """Return the folder for work files of a release, or for the copy of a dataset's source."""
        return self.private / "work" / name

    def candidate(self, release_id: str) -> Path:
        """Return the file of a candidate, which publishing moves."""
        return self.private / "candidates" / f"{release_id}.parquet"

    def dataset_lock(self, dataset: str) -> Path:
        return self.locks / f"dataset-{dataset}.lock"  # no dataset's name holds a dash

    def up_record(self, service: str) -> Path:
        """Return the file in which `ppdm up` records what it started: "prefect" or "mlflow"."""
        return self.private / f"up-{service}.json"

    def address(self, service: str) -> str | None:
        """Return the address of the pages that `ppdm up` started, or None if they do not answer."""
        try:
            port = int(json.loads(self.up_record(service).read_text())["port"])
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return f"http://127.0.0.1:{port}"
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def create(self) -> None:
        """Make all folders; refuse a link in place of `private`, which anybody may have made."""
        if self.private.is_symlink():
            raise BadInput(
                f"The folder 'private' of the home {self.root} is a link.",
                file=str(self.private),
                remedy="Move the folder itself into the home, or name the home that contains it.",
            )
        folders = (
            self.keys,
            self.locks,
            self.private / "work",
            self.private / "candidates",
            self.views,
            self.published,
        )
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self.private.mkdir(mode=0o700, exist_ok=True)
            restrict_access(self.private)
            for folder in folders:
                folder.mkdir(exist_ok=True)
        except OSError as error:
            raise MachineTrouble(
                f"The home {self.root} cannot be made: {error.strerror}.",
                file=str(self.root),
                remedy="Name a folder that you may write to, with --home or PPDM_HOME.",
            ) from None

    def make_work(self, name: str, elsewhere: str = "") -> Path:
        """Make the folder for work files of a release, in the home or below ``elsewhere``.

        The home has a link to each folder elsewhere, so that later commands find and remove it.
        """
        own = self.work(name)
        digest = hashlib.sha256(str(self.root.resolve()).encode()).hexdigest()
        folder = Path(elsewhere) / f"{name}-{digest[:16]}" if elsewhere else own
        with translate_disk_errors(folder):
            own.mkdir(mode=0o700, parents=True, exist_ok=True)
            if elsewhere and folder not in map(Path.readlink, self.list_links(name)):
                link = self.private / "work" / f"{name}.{secrets.token_hex(8)}"
                link.symlink_to(folder)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def clear_work(self, name: str) -> None:
        """Remove the work files of a release, or the copy of a dataset's source.

        A link to a disk that is not mounted stays for a later command.
        """
        for link in self.list_links(name):
            folder = link.readlink()
            if remove_folder(folder) and folder.parent.exists():
                link.unlink()
        remove_folder(self.work(name))

    def list_links(self, name: str) -> list[Path]:
        """Return the links to folders elsewhere with work files of a release."""
        return sorted((self.private / "work").glob(f"{name}.*"))

    def list_work(self) -> dict[str, set[str]]:
        """Return the datasets with work files, each with the names of its work files."""
        found: dict[str, set[str]] = {}
        for path in (self.private / "work").iterdir():
            if match := WORK_NAME.fullmatch(path.name.partition(".")[0]):
                found.setdefault(match[1], set()).add(match[0])
        return found


def remove_folder(folder: Path) -> bool:
    """Remove a folder; return whether it is gone.

    A worker that still writes there may add a file meanwhile: then it is removed again.
    """
    deadline = time.monotonic() + REMOVE_SECONDS
    shutil.rmtree(folder, ignore_errors=True)
    while os.path.lexists(folder) and time.monotonic() < deadline:
        time.sleep(0.1)
        shutil.rmtree(folder, ignore_errors=True)
    return not os.path.lexists(folder)


def is_shared(folder: Path) -> bool:
    """Return whether a group may use the folder (`chmod 2770`), and no others."""
    return folder.stat().st_mode & 0o2077 == 0o2070


def file_mode(folder: Path) -> int:
    """Return the mode of private files in a folder."""
    return 0o660 if is_shared(folder) else 0o600


def create_private(path: Path) -> BinaryIO:
    """Create or empty a file that only its owner, or the group that shares the home, may read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.fchmod(descriptor, file_mode(path.parent))
    return os.fdopen(descriptor, "wb")


def restrict_access(folder: Path) -> None:
    """Restrict a folder to its owner, or to the group that shares it."""
    if is_shared(folder):
        os.umask(0o007)  # every member of the group must be able to change the files
    else:
        folder.chmod(0o700)


def sync(path: Path) -> None:
    """Write a file to the disk itself; for a folder: the names in it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def translate_disk_errors(path: Path) -> Iterator[None]:
    """Turn errors of the disk into one sentence with exit code 5."""
    try:
        yield
    except OSError as error:
        cause = DISK_ERRORS.get(error.errno or 0, os.strerror(error.errno or 0).lower())
        raise MachineTrouble(
            f"Cannot write below {path}: {cause}.", file=str(path), remedy="Free it and try again."
        ) from None
