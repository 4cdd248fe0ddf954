"""Every method against every applicable attack at a common utility, and the frontier of methods.

    python -m studies.reproduction.method_map FOLDER [--tables iris wine] [--draw]

Beyond the papers. Settings of a method are thinned by successive halving: all are measured for
accuracy on one draw, the half nearest to the common utility again on three draws, and the nearest
one is attacked. For the frontier, a few settings of each method are attacked, too. Each audit is
one line of FOLDER/map.jsonl with its processor time, so that a run continues where it stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ppdm_core.attacks import ATTACKS
from ppdm_core.model.score import Score
from studies.public_table_audit import Release, audit_release

TABLES = ("iris", "wine", "wdbc", "pima")
ACCURACY = "best_accuracy"
COMMON_SHARE = 0.8  # of the way from the largest class to the original
FRONTIER_SETTINGS = 3  # of each method, from little to much noise
SETTINGS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "pca_laplace": [
        {"components": 0.5, "b": b, "basis": "private", "noise_shape": "per_component"}
        for b in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
    ],
    "additive_noise": [{"b": b} for b in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)],
    "random_rotation": [{}],
    "random_projection": [{"components": share} for share in (0.9, 0.75, 0.5, 0.3, 0.15)],
    "kde_resample": [
        {"bandwidth": "floor", "floor": floor, "lonely": "merge"}
        for floor in (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
    ],
    "dct_fuzzy": [{"b": b, "p": 0.2} for b in (0.05, 0.1, 0.2, 0.4, 0.6)],
    "nonmetric_mds": [
        {"dimensions": share, "landmarks": 300} for share in (0.9, 0.75, 0.5, 0.3, 0.15)
    ],
}


@dataclass(frozen=True)
class Audited:
    """One audit of one setting."""

    table: str
    method: str
    parameters: Mapping[str, Any]
    draws: int
    is_attacked: bool
    share: float  # of the way from the largest class to the original
    accuracy: float
    risks: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # attack -> value, base
    seconds: float = 0.0

    @property
    def key(self) -> str:
        """What identifies the audit."""
        given = json.dumps(self.parameters, sort_keys=True)
        return f"{self.table} {self.method} {given} {self.draws} {self.is_attacked}"

    @property
    def worst_risk(self) -> float:
        """The largest excess of an attack over its baseline."""
        return max((value - base for value, base in self.risks.values()), default=0.0)


class MapFile:
    """Finished audits, one line of JSON each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.found = {each.key: each for each in (Audited(**json.loads(x)) for x in lines)}

    def audit(
        self, table: str, method: str, parameters: Mapping[str, Any], draws: int, attacked: bool
    ) -> Audited:
        """Return an audit that was made before, or make it."""
        empty = Audited(table, method, parameters, draws, attacked, 0.0, 0.0)
        if empty.key not in self.found:
            made = run_audit(empty)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps(made.__dict__) + "\n")
            self.found[made.key] = made
        return self.found[empty.key]


def run_audit(wanted: Audited) -> Audited:
    """Measure accuracy, and all attacks if they are wanted."""
    start = time.process_time()
    effort = "standard" if wanted.is_attacked else "quick"
    release = Release(
        wanted.method,
        wanted.parameters,
        wanted.table,
        draws=wanted.draws,
        effort=effort,  # type: ignore[arg-type]
    )
    names = [*ATTACKS, ACCURACY] if wanted.is_attacked else [ACCURACY]
    scores = audit_release(release, names)
    use = scores[ACCURACY]
    assert use.original is not None
    way = use.original - use.baseline
    return Audited(
        **{
            **wanted.__dict__,
            "share": (use.value - use.baseline) / way if way > 0 else 0.0,
            "accuracy": use.value,
            "risks": dict(list_risks(scores.values())),
            "seconds": time.process_time() - start,
        }
    )


def list_risks(scores: Iterator[Score] | Any) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield value and baseline of the rate of each attack; a larger rate is worse."""
    worst: dict[str, Score] = {}
    for score in scores:
        attack = score.name.split(".")[0]
        if attack in ATTACKS and score.better == "down" and 0.0 <= score.value <= 1.0:
            best = worst.get(attack)
            if best is None or score.value - score.baseline > best.value - best.baseline:
                worst[attack] = score
    for attack, score in worst.items():
        yield attack, (score.value, score.baseline)


def find_common_setting(file: MapFile, table: str, method: str) -> Audited:
    """Return the audit of the setting nearest to the common utility, by successive halving."""
    left = list(SETTINGS[method])
    draws = 1
    while len(left) > 1:
        measured = [file.audit(table, method, each, draws, False) for each in left]
        measured.sort(key=lambda each: abs(each.share - COMMON_SHARE))
        left = [dict(each.parameters) for each in measured[: max(1, len(left) // 2)]]
        draws = 3
    return file.audit(table, method, left[0], 2, True)


def attack_frontier(file: MapFile, table: str, method: str) -> list[Audited]:
    """Return attacked settings of a method, from little to much noise."""
    settings = SETTINGS[method]
    count = min(FRONTIER_SETTINGS, len(settings))
    places = [round(i * (len(settings) - 1) / max(1, count - 1)) for i in range(count)]
    return [file.audit(table, method, settings[place], 2, True) for place in places]


def main(arguments: Sequence[str]) -> int:
    """Audit what is missing, print the cost, and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--draw", action="store_true", help="only draw what was audited")
    given = parser.parse_args(arguments)
    file = MapFile(given.folder / "map.jsonl")
    for table in () if given.draw else given.tables:
        for method in SETTINGS:
            common = find_common_setting(file, table, method)
            print(f"{table} {method}: share {common.share:.2f}, risk {common.worst_risk:.2f}")
            attack_frontier(file, table, method)
    seconds = sum(each.seconds for each in file.found.values())
    print(f"{len(file.found)} audits, {seconds / 60:.1f} minutes of processor time")
    from studies.reproduction.draw_map import draw_frontier, draw_heat_map

    draw_heat_map(list(file.found.values()), given.folder / "map.svg")
    draw_frontier(list(file.found.values()), given.folder / "frontier.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
