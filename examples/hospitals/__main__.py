"""Release a table of three hospitals together.

    python -m examples.hospitals FOLDER

The records are invented here. Each hospital has its own folder, home, keys and processes below
FOLDER; the centre has no table. It takes some minutes, most of them for the attacks of each site.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from examples.parties import CENTRE, FILE, join_parties, run_parties, show_end, write_parties
from ppdm.example_tables import write_csv

PATIENTS = 1000  # of each hospital
SEEDS = {"east": 2601, "north": 2602, "south": 2603}
ILL_SHARES = {"east": 0.35, "north": 0.4, "south": 0.5}
NORMAL = {  # column -> value of a healthy person, effect of the illness, spread
    "temperature": (37.0, 0.8, 0.3),
    "pulse": (78.0, 14.0, 7.0),
    "breaths": (16.0, 3.5, 1.6),
    "pressure": (128.0, -12.0, 8.0),
    "leukocytes": (8.0, 3.0, 1.5),
    "lactate": (1.4, 0.8, 0.3),
}


def make_patients(n: int, seed: int, ill_share: float, prefix: str) -> bytes:
    """Return invented patients: six measurements that a sepsis moves in the same direction.

    Only ``random`` is drawn from the generator, whose values are the same in every version.
    """
    rng = np.random.default_rng(seed)

    def draw_spread() -> np.ndarray:
        return (rng.random((4, n)).sum(axis=0) - 2) * np.sqrt(3)

    is_ill = rng.random(n) < ill_share
    severity = 1.6 * is_ill + 0.5 * draw_spread()
    values = {
        name: centre + effect * severity + spread * draw_spread()
        for name, (centre, effect, spread) in NORMAL.items()
    }
    rows = (
        [
            f"{prefix}{i:05d}",
            "sepsis" if is_ill[i] else "other",
            *(f"{column[i]:.1f}" for column in values.values()),
        ]
        for i in range(n)
    )
    return write_csv(["patient_id", "outcome", *values], rows)


def make_files() -> dict[str, dict[str, bytes]]:
    """Return the files of each party; all have the same release file."""
    release = {FILE: Path(__file__).with_name(FILE).read_bytes()}
    files = {CENTRE: dict(release)}
    for name, seed in SEEDS.items():
        given = (ILL_SHARES[name], name[0].upper())
        files[name] = {
            **release,
            "patients.csv": make_patients(PATIENTS, seed, *given),
        }
    return files


def main(folder: Path) -> int:
    """Make the parties, let them join, and run all of them."""
    write_parties(folder, make_files())
    join_parties(folder, [*SEEDS])
    print("The centre and three hospitals run; what each prints stands in its run.log.", flush=True)
    return show_end(folder, run_parties(folder, [*SEEDS]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python -m examples.hospitals FOLDER")
    sys.exit(main(Path(sys.argv[1]).absolute()))
