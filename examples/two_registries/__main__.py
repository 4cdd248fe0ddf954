"""Release columns of two registries about the same persons.

    python -m examples.two_registries FOLDER

The records are invented here: answers from 0 to 3, four of them in each registry. The registries
agree among themselves on the order of persons and columns; the centre sees sums under masks. The
gate of each registry judges what the other one can learn of its columns. The release is refused:
cosine coefficients hold no noise, and each registry would recover a third of the records of the
other one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from examples.parties import CENTRE, FILE, join_parties, run_parties, show_end, write_parties
from ppdm.example_tables import write_csv

PERSONS = 1500
SEED = 2701
COLUMNS = {
    "health": ("sleep", "pain", "mobility", "mood"),
    "labour": ("hours", "strain", "commute", "security"),
}
LABEL = "sick_leave"  # held by the labour registry


def make_answers() -> tuple[np.ndarray, np.ndarray]:
    """Return the answers of all persons, (n, 8), and who had a sick leave.

    Only ``random`` is drawn from the generator, whose values are the same in every version.
    """
    rng = np.random.default_rng(SEED)
    burden = rng.random((PERSONS, 1))
    answers = np.floor(4 * (0.5 * burden + 0.5 * rng.random((PERSONS, 8))))
    is_ill = rng.random(PERSONS) < 0.15 + 0.6 * burden[:, 0]
    return answers.astype(int), is_ill


def make_files() -> dict[str, dict[str, bytes]]:
    """Return the files of each party: the release file, and the columns that it holds."""
    answers, is_ill = make_answers()
    folder = Path(__file__).parent
    files = {CENTRE: {FILE: (folder / "centre.toml").read_bytes()}}
    for place, (name, columns) in enumerate(COLUMNS.items()):
        own = answers[:, 4 * place : 4 * place + 4]
        has_label = name == "labour"
        order = np.random.default_rng(SEED + place + 1).random(PERSONS).argsort()
        rows = (
            [
                f"P{10_000 + 7 * i}",
                *own[i].tolist(),
                *(["yes" if is_ill[i] else "no"] if has_label else []),
            ]
            for i in order
        )
        names = ["person_id", *columns, *([LABEL] if has_label else [])]
        release = (folder / f"{name}.toml").read_bytes()
        files[name] = {FILE: release, "persons.csv": write_csv(names, rows)}
    return files


def main(folder: Path) -> int:
    """Make the parties and let them join, unless they did before; run all of them."""
    if not (folder / CENTRE).exists():
        write_parties(folder, make_files())
        join_parties(folder, [*COLUMNS])
    print("The centre and two registries run; what each prints is in its run.log.", flush=True)
    return show_end(folder, run_parties(folder, [*COLUMNS]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python -m examples.two_registries FOLDER")
    sys.exit(main(Path(sys.argv[1]).absolute()))
