"""Small tables and their release files, made to be approved, refused or spoiled."""

from __future__ import annotations

import copy
import csv
import random
import shutil
import uuid
from pathlib import Path
from typing import Any

import tomlkit

from tests.support.forkserver import Command, Result, run_cli, start_cli

FEATURES = ("height", "weight", "pulse", "iron")
CLASSES = ("calm", "tense")
ATTACKS = ["transform_inverse", "shrinkage", "known_pairs", "record_linkage", "membership"]
BY = {"set_by": "tests", "reason": "as the test needs it"}

Row = dict[str, str]


ROWS = 480  # enough to certify the limits below


def small_rows(n: int = ROWS, seed: int = 1) -> list[Row]:
    """Return rows of two classes along one direction, which one component separates."""
    rng = random.Random(seed)
    rows = []
    for i in range(n):
        level = 3.0 + 4.0 * (i % 2) + rng.gauss(0, 0.4)
        row = {"person": f"id-{seed}-{i:05d}", "mood": CLASSES[i % 2], "notes": f"note {i}"}
        row |= {name: repr(level + rng.gauss(0, 0.3)) for name in FEATURES}
        rows.append(row)
    return rows


def feature(**changes: Any) -> dict[str, Any]:
    return {"role": "feature", "type": "numeric", "low": 0, "high": 10, **changes}


CONTENT: dict[str, Any] = {
    "format": 1,
    "dataset": {"owner": "registry", "audience": "partners", "record_id": "person"},
    "source": {"kind": "csv", "path": "table.csv"},
    "columns": {
        "person": {"role": "identifier"},
        "mood": {"role": "label", "type": "categorical", "categories": list(CLASSES)},
        "notes": {"role": "exclude"},
        **{name: feature() for name in FEATURES},
    },
    "sanitizer": {
        "method": "pca_laplace",
        "components": 1,
        "b": 0.3,
        "noise_shape": "per_component",
        "basis": "sample",
        "basis_share": 0.2,
    },
    "attacker": {"known_records": 8, "sample_share": 0.1, "epsilon": 0.03},
    "audit": {
        "required": ATTACKS,
        "shadow_draws": 1,
        "splits": 3,
        "effort": "quick",
        "time_limit": "1 min",
    },
    "limits": {
        "amplification.record": {"value": 1e9, **BY},
        "record_linkage.rate": {"value": 0.2, **BY},
        "known_pairs.breach_rate": {"value": 0.2, **BY},
        "membership.true_positive_rate": {"value": 0.2, **BY},
        "label.rate": {"value": 0.05, **BY},
        "knn_accuracy": {"value": 0.0, "absolute": True, **BY},
    },
}


class Small:
    """A release in a folder of its own: change ``rows`` or ``content``, then ``write``."""

    def __init__(
        self, folder: Path, name: str, env: dict[str, str | None], rows: list[Row] | None = None
    ) -> None:
        self.folder, self.name, self.env = folder, name, env
        self.rows = small_rows() if rows is None else rows
        self.content = copy.deepcopy(CONTENT)
        self.content["dataset"]["name"] = name
        self.file = folder / f"{name}.toml"
        self.table = folder / f"{name}.csv"
        self.content["source"]["path"] = self.table.name
        self.home = folder / ".ppdm"

    def write(self) -> Small:
        self.folder.mkdir(parents=True, exist_ok=True)
        write_csv(self.table, self.rows)
        self.file.write_text(tomlkit.dumps(self.content))
        return self

    def copied_to(self, folder: Path) -> Small:
        """With its home, as both are now."""
        shutil.copytree(self.folder, folder, symlinks=True)
        mark = {"PPDM_TESTS_MARK": uuid.uuid4().hex}  # its processes are not those of the first
        copied = Small(folder, self.name, {**self.env, **mark}, [*self.rows])
        copied.content = copy.deepcopy(self.content)
        return copied

    def strict(self) -> Small:
        """A rotation, which known records undo, under a limit that does not bear it."""
        self.content["sanitizer"] = {"method": "random_rotation"}
        self.content["audit"]["required"] = ["known_pairs", "record_linkage", "membership"]
        self.content["limits"]["known_pairs.breach_rate"]["value"] = 0.1
        return self

    def undecided(self, approvals: int) -> Small:
        """A limit that leaves whatever comes to people."""
        self.content["limits"]["knn_accuracy"]["review"] = 0.9999
        self.content["review"] = {"approvals": approvals, "lapses_after": "14 days"}
        return self

    @property
    def published(self) -> Path:
        return self.home / "published" / self.name

    def versions(self) -> list[str]:
        """What a visitor of the published folder sees."""
        if not self.published.exists():
            return []
        names = (path.name for path in self.published.iterdir())
        return sorted(name for name in names if name != "latest" and not name.startswith("."))

    @property
    def private(self) -> Path:
        return self.home / "private"

    def run(self, *args: str, entry: str = "with_key", timeout: float = 240) -> Result:
        """``ppdm release FILE``, or another command on the file."""
        return self.start(*args, entry=entry).wait(timeout)

    def start(self, *args: str, entry: str = "with_key") -> Command:
        command = [*(args or ("release",)), str(self.file)]
        return start_cli(command, env=self.env, entry=f"tests.support.entries:{entry}")

    def ask(self, *args: str, entry: str = "with_key") -> Result:
        """A command on the home, such as ``ppdm status``."""
        env = {**self.env, "PPDM_HOME": str(self.home)}
        return run_cli(args, env=env, entry=f"tests.support.entries:{entry}")


def write_csv(path: Path, rows: list[Row]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
