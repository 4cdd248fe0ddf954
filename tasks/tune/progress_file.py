"""The trials of a running tune, on disk: a killed tune is continued where it stopped."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ppdm_core.tuning.trial import Trial
from warehouse.checkpoints import checkpoint
from warehouse.home import create_private, translate_disk_errors
from warehouse.json_codec import from_json, to_json


class ProgressFile:
    """One line of JSON for each finished trial; it holds scores and no record."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Trial]:
        """Return the finished trials; a line that a kill cut off is left out and removed."""
        if not self.path.exists():
            return []
        trials, size = [], 0
        for line in self.path.read_bytes().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                break
            trials.append(from_json(Trial, json.loads(line)))
            size += len(line)
        with translate_disk_errors(self.path):
            os.truncate(self.path, size)
        return trials

    def append(self, trial: Trial) -> None:
        """Write a trial to the disk itself."""
        with translate_disk_errors(self.path):
            if not self.path.exists():
                self.path.parent.mkdir(exist_ok=True)
                create_private(self.path).close()
            with self.path.open("ab") as file:
                file.write(json.dumps(to_json(trial), allow_nan=False).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        checkpoint("setting measured")

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
