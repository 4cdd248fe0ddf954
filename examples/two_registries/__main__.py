"""Release columns of two registries about the same persons.

    python -m examples.two_registries FOLDER [--without-noise]

The records are invented here: answers from 0 to 3, four of them in each registry. The registries
agree among themselves on the order of persons and columns; the centre sees sums under masks. The
gate of each registry judges what the other one can learn of its columns, and the centre what
somebody learns from the sums who knows complete records. Each registry adds noise to its own part:
as little as the centre's limit on the amplification of a complete record allows, in two digits.

No check judges membership, because columns so coarse keep the limit in any case: the reviewers of
both registries decide (exit code 4). Each of them approves with `ppdm decide persons-0001
--approve`; then the same command publishes.

Without noise the release is refused: cosine coefficients alone let each registry recover two thirds
of the records of the other one.
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
# What changes without noise; the method then has no bound, which the limit must accept.
NOISE_LINE = "noise_scale"
BOUND, NO_BOUND = "value = 1100, ", 'value = 1100, waive = ["dct_fuzzy"], '
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


def read_release_file(name: str, has_noise: bool) -> bytes:
    """Return the release file of a party, with or without noise."""
    text = (Path(__file__).parent / f"{name}.toml").read_text()
    if not has_noise:
        lines = text.splitlines(keepends=True)
        text = "".join(line for line in lines if not line.startswith(NOISE_LINE))
        text = text.replace(BOUND, NO_BOUND)
    return text.encode()


def make_files(has_noise: bool) -> dict[str, dict[str, bytes]]:
    """Return the files of each party: the release file, and the columns that it holds."""
    answers, is_ill = make_answers()
    files = {CENTRE: {FILE: read_release_file(CENTRE, has_noise)}}
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
        release = read_release_file(name, has_noise)
        files[name] = {FILE: release, "persons.csv": write_csv(names, rows)}
    return files


def main(folder: Path, has_noise: bool) -> int:
    """Make the parties and let them join, unless they did before; run all of them."""
    if not (folder / CENTRE).exists():
        write_parties(folder, make_files(has_noise))
        join_parties(folder, [*COLUMNS])
    print("The centre and two registries run; what each prints is in its run.log.", flush=True)
    return show_end(folder, run_parties(folder, [*COLUMNS]))


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--without-noise"]):
        sys.exit("Usage: python -m examples.two_registries FOLDER [--without-noise]")
    sys.exit(main(Path(sys.argv[1]).absolute(), len(sys.argv) == 2))
