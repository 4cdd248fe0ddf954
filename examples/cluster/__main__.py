"""Release a table on two workers of a dask cluster on this machine.

    python -m examples.cluster FOLDER

The records are invented here. The cluster has certificates and a key of its own, and is stopped at
the end. It takes some minutes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from examples.parties import FILE, PPDM, make_env
from ppdm.example_tables import write_csv

PATIENTS = 20_000
SEED = 2725
COLUMNS = {"age": (45, 14), "weight": (78, 13), "pressure": (128, 16), "glucose": (98, 21)}


def make_patients() -> bytes:
    """Return invented patients whose measurements rise together."""
    rng = np.random.default_rng(SEED)
    common = rng.random(PATIENTS) - 0.5
    values = [
        mean + spread * (2 * common + 2 * (rng.random(PATIENTS) - 0.5))
        for mean, spread in COLUMNS.values()
    ]
    rows = (
        [f"P{i:05d}", "yes" if common[i] > 0.1 else "no", *(f"{each[i]:.1f}" for each in values)]
        for i in range(PATIENTS)
    )
    return write_csv(["patient_id", "treated", *COLUMNS], rows)


def main(folder: Path) -> int:
    """Write the files, start a cluster, release, and stop the cluster."""
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} is not empty. Name another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "patients.csv").write_bytes(make_patients())
    (folder / FILE).write_bytes(Path(__file__).with_name(FILE).read_bytes())

    def ppdm(*words: str) -> int:
        print("$ ppdm", *words, flush=True)
        return subprocess.run([*PPDM, *words], cwd=folder, env=make_env()).returncode

    home = ("--home", str(folder / ".ppdm"))
    if ppdm("cluster", "up", "--workers", "2", *home):
        return 5
    try:
        return ppdm("release", FILE)
    finally:
        ppdm("cluster", "down", *home)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python -m examples.cluster FOLDER")
    sys.exit(main(Path(sys.argv[1]).absolute()))
