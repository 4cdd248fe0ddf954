"""Every method against every applicable attack at a common utility, and the frontier of methods.

    python -m studies.reproduction.method_map [--tables iris wine] [--folder FOLDER]

Beyond the papers. At most 200 records of each table are released. Settings of a method are thinned
by successive halving: all are measured for accuracy on one draw, the half nearest to the common
utility on two further draws, and the nearest one is attacked by all attacks. For the frontier, the
settings with the least and the most noise are attacked, too, by all attacks except the one that
takes most of the time. Each audit is one line of FOLDER/map.jsonl with its processor time, so that
a run continues where it stopped. The next `ppdm reproduce --measured` draws what was audited.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ppdm_core.attacks import ATTACKS
from ppdm_core.model.score import Score
from studies.public_table_audit import Release, audit_release
from studies.reproduction.registry import FOLDER

MAP = FOLDER / "map.jsonl"
TABLES = ("iris", "wine", "wdbc", "pima")
MAX_RECORDS = 200
ACCURACY = "best_accuracy"
COMMON_SHARE = 0.8  # of the way from the largest class to the original
NEAR_SHARE = 0.1  # of the common utility: settings farther away are not compared
SLOWEST_ATTACK = "learned_linkage"  # takes two thirds of the time of all attacks
NO_RATE = "auc"  # of the membership attack, which has a rate as well
LEVELS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1.0)  # of noise
FLOORS = (0.05, 0.1, 0.15, 0.3, 0.45, 0.6, 0.8, 0.95)  # of bandwidths
LOSSES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6)  # of energy
SHARES = (0.9, 0.75, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)  # of the columns
SETTINGS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "pca_laplace": [
        {"components": 0.5, "b": b, "basis": "private", "noise_shape": "per_component"}
        for b in LEVELS
    ],
    "additive_noise": [{"b": b} for b in LEVELS],
    "random_rotation": [{}],
    "random_projection": [{"components": share} for share in SHARES],
    "kde_resample": [{"bandwidth": "floor", "floor": floor, "lonely": "merge"} for floor in FLOORS],
    "dct_fuzzy": [{"b": b, "p": 0.2} for b in LOSSES],
    "nonmetric_mds": [{"dimensions": share, "landmarks": 200} for share in SHARES],
}


@dataclass(frozen=True)
class Audited:
    """One audit of one setting."""

    table: str
    method: str
    parameters: Mapping[str, Any]
    draws: int
    attacks: str  # "none", "all", or "most": all except the slowest
    share: float = 0.0  # of the way from the largest class to the original
    accuracy: float = 0.0
    risks: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # attack -> value, base
    seconds: float = 0.0

    @property
    def key(self) -> str:
        """What identifies the audit."""
        given = json.dumps(self.parameters, sort_keys=True)
        return f"{self.table} {self.method} {given} {self.draws} {self.attacks}"

    @property
    def worst_attack(self) -> str:
        """The attack with the largest excess over its baseline."""
        return max(self.risks, key=self.compute_excess)

    @property
    def worst_risk(self) -> float:
        """The largest excess of an attack over its baseline."""
        return max(0.0, self.compute_excess(self.worst_attack))

    def compute_excess(self, attack: str) -> float:
        """Return how far an attack is above its baseline."""
        value, base = self.risks[attack]
        return value - base


def is_near(each: Audited) -> bool:
    """Return whether a setting is near the common utility."""
    return abs(each.share - COMMON_SHARE) <= NEAR_SHARE


class MapFile:
    """Finished audits, one line of JSON each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found = {each.key: each for each in read_map(path)}

    def audit(self, wanted: Audited) -> Audited:
        """Return an audit that was made before, or make it."""
        if wanted.key not in self.found:
            made = run_audit(wanted)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(made)) + "\n")
            self.found[made.key] = made
        return self.found[wanted.key]


def read_map(path: Path = MAP) -> list[Audited]:
    """Return all finished audits; nothing if there is no file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Audited(**json.loads(line)) for line in lines]


def run_audit(wanted: Audited) -> Audited:
    """Measure accuracy, and the attacks that are wanted."""
    start = time.process_time()
    names = {
        "none": [],
        "all": list(ATTACKS),
        "most": [name for name in ATTACKS if name != SLOWEST_ATTACK],
    }[wanted.attacks]
    release = Release(
        wanted.method,
        wanted.parameters,
        wanted.table,
        draws=wanted.draws,
        splits=1,
        effort="quick",
        max_rows=MAX_RECORDS,
    )
    scores = audit_release(release, [*names, ACCURACY])
    use = scores[ACCURACY]
    assert use.original is not None
    way = use.original - use.baseline
    return replace(
        wanted,
        share=(use.value - use.baseline) / way if way > 0 else 0.0,
        accuracy=use.value,
        risks=dict(list_risks(scores.values())),
        seconds=round(time.process_time() - start, 2),
    )


def list_risks(scores: Iterable[Score]) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield value and baseline of the rate of each attack, over all records; larger is worse."""
    for score in scores:
        attack, _, metric = score.name.partition(".")
        is_rate = score.better == "down" and "." not in metric and metric != NO_RATE
        if attack in ATTACKS and is_rate:
            yield attack, (score.value, score.baseline)


def attack_common(file: MapFile, table: str, method: str) -> Audited:
    """Attack the setting nearest to the common utility, which successive halving finds."""
    left = [Audited(table, method, each, 1, "none") for each in SETTINGS[method]]
    while len(left) > 1:
        measured = [file.audit(each) for each in left]
        measured.sort(key=lambda each: abs(each.share - COMMON_SHARE))
        kept = measured[: len(left) // 2]
        left = [Audited(table, method, each.parameters, 2, "none") for each in kept]
    return file.audit(replace(left[0], draws=1, attacks="all"))


def attack_ends(file: MapFile, table: str, method: str) -> list[Audited]:
    """Attack the settings of a method with the least and the most noise."""
    ends = {json.dumps(each): each for each in (SETTINGS[method][0], SETTINGS[method][-1])}
    return [file.audit(Audited(table, method, each, 1, "most")) for each in ends.values()]


def main(arguments: Sequence[str]) -> int:
    """Audit what is missing, and print the cost."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    given = parser.parse_args(arguments)
    file = MapFile(given.folder / MAP.name)
    for table in given.tables:
        for method in SETTINGS:
            common = attack_common(file, table, method)
            print(f"{table} {method}: share {common.share:.2f}, risk {common.worst_risk:.2f}")
            attack_ends(file, table, method)
    seconds = sum(each.seconds for each in file.found.values())
    print(f"{len(file.found)} audits, {seconds / 60:.1f} minutes of processor time")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
