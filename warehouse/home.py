"""Where everything of one steward lives.

<home>/private/     0700: warehouse, keys, locks, work files of running releases
<home>/views/       what Prefect and MLflow show; holds no private value
<home>/published/   what outsiders may have
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

from ppdm_core.errors import MachineTrouble


@dataclass(frozen=True)
class Home:
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
    def locks(self) -> Path:
        return self.private / "locks"

    @property
    def views(self) -> Path:
        return self.root / "views"

    @property
    def published(self) -> Path:
        return self.root / "published"

    def work(self, release_id: str) -> Path:
        return self.private / "work" / release_id

    def dataset_lock(self, dataset: str) -> Path:
        return self.locks / f"dataset-{dataset}.lock"  # no dataset's name holds a dash

    def up_record(self, service: str) -> Path:
        """Where `ppdm up` writes down what it started: "prefect" or "mlflow"."""
        return self.private / f"up-{service}.json"

    def address(self, service: str) -> str | None:
        """Of the pages that `ppdm up` started, if they still answer."""
        try:
            port = int(json.loads(self.up_record(service).read_text())["port"])
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return f"http://127.0.0.1:{port}"
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def create(self) -> None:
        folders = (self.keys, self.locks, self.private / "work", self.views, self.published)
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self.private.mkdir(mode=0o700, exist_ok=True)
            self.private.chmod(0o700)
            for folder in folders:
                folder.mkdir(exist_ok=True)
        except OSError as error:
            raise MachineTrouble(
                f"The home {self.root} cannot be made: {error.strerror}.",
                file=str(self.root),
                remedy="Name a folder that you may write to, with --home or PPDM_HOME.",
            ) from None

    def clear_work(self, release_id: str) -> None:
        shutil.rmtree(self.work(release_id), ignore_errors=True)


def sync(path: Path) -> None:
    """Written to the disk itself; for a folder: the names in it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
