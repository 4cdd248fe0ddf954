"""One dataset through everything that can happen to it, for tests that only look."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from tests.support.forkserver import Result
from tests.support.small_release import CLASSES, FEATURES, Row, Small, small_rows

TOKEN = "qzxcanary"  # in every id and every excluded cell
FAR = ("9.123456789012344", "0.987654321098765", "1.357913579135791", "8.642086420864209")
ADDED: Row = {"person": f"{TOKEN}-new", "mood": CLASSES[0], "notes": f"{TOKEN} note"}
ADDED |= dict(zip(FEATURES, FAR, strict=True))


@dataclass
class History:
    release: Small
    results: dict[str, Result] = field(default_factory=dict)
    points: list[str] = field(default_factory=list)  # that its first run passed
    needles: list[bytes] = field(default_factory=list)  # what must be found nowhere


def first_rows() -> list[Row]:
    """A token in every id and in every cell that is left out; all other cells are long numbers."""
    return [
        {**row, "person": f"{TOKEN}-{number}", "notes": f"{TOKEN} {number}"}
        for number, row in enumerate(small_rows())
    ]


def make_history(release: Small) -> History:
    history = History(release.write())
    results, run = history.results, release.run
    passed = release.folder / "points"
    results["approved"] = run(str(passed), "release", "--json", entry="noted")
    history.points = passed.read_text().splitlines()
    release.rows.append(ADDED)
    release.write()
    results["dry run"] = run("release", "--dry-run", "--json")
    results["changed"] = run("release", "--json")
    lax = copy.deepcopy(release.content)
    release.strict().write()
    results["refused"] = run("release", "--json")
    release.content = copy.deepcopy(lax)
    release.content["sanitizer"]["b"] = 0.31  # or nothing new would leave
    release.undecided(approvals=2).write()
    results["waiting"] = run("release", "--json")
    release.content = lax
    release.write()
    results["defect"] = run(f"{TOKEN} cell", "release", entry="defective")
    release.rows[6]["iron"] = f"{TOKEN} cell"
    release.write()
    results["bad"] = run("release")
    return history
