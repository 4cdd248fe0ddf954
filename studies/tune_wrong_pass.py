"""How often a tune leads to a wrong PASS, on tables where every setting is just too risky.

    python -m studies.tune_wrong_pass results.jsonl              # 200 tunes of each population
    python -m studies.tune_wrong_pass results.jsonl --tunes 50
    python -m studies.tune_wrong_pass results.jsonl --summary    # only print the table

What is simulated: each tune has a new table of 300 records of one population, 21 settings of
`pca_laplace` (7 numbers of components, 3 levels of noise each), and one attack: the row that is
nearest to a record, with the published loadings. The noise of each number of components is
calibrated on other tables so that its true rate is the same; the limit is set two standard errors
below it, so that every PASS is wrong. Draws, intervals, rounds, ranking, choice and the outcome of
the verdict are those of the product. What is not simulated: the other attacks and limits, which
can only turn a PASS into another outcome.

Three stewards: one releases a setting that was fixed before (no tune), one releases what the tune
proposes, and one releases the setting whose measured risk was lowest in the tune, whatever it
proposed. A run continues a file of results.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from ppdm_core.audit.scores import Figures, make_score
from ppdm_core.gates.score_limits import judge, judge_outcome
from ppdm_core.metrics import METRICS
from ppdm_core.model.arrays import Floats
from ppdm_core.model.policy import Limit, Policy
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.model.score import Score
from ppdm_core.numerics.intervals import clopper_pearson
from ppdm_core.numerics.mean_limits import mean_interval
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers import make_sanitizer
from ppdm_core.tuning.choice import choose_setting
from ppdm_core.tuning.halving import MAX_FINALISTS, plan_rounds, rank_trials
from ppdm_core.tuning.setting import Setting
from ppdm_core.tuning.trial import Trial
from ppdm_core.tuning.utility import Utility

N, D = 300, 8
COMPONENTS = range(2, D + 1)  # one component never reaches the target
METHOD, CHECK, USE = "pca_laplace", "record_linkage.rate", "best_accuracy"
TARGET = 0.08  # excess over a random row that is calibrated for
NOISE_STEPS = (1.0, 0.99, 0.98)  # of the calibrated noise: never more
CALIBRATION_TABLES, TRUTH_TABLES = 60, 300
POPULATIONS = ("normal", "outliers")
STEWARDS = ("no tune", "proposed", "lowest risk")
LEVEL = Policy((), {}).level
LABEL = Categorical("label", ("a", "b"))


def draw_table(population: str, name: str) -> ArrayRows:
    """Return a table of the population, scaled to [0, 1]."""
    rng = make_rng(population, name)
    spread = np.linspace(1.0, 0.4, D)
    X = rng.normal(size=(N, D)) * spread
    if population == "outliers":  # a tenth of the persons are found in every draw
        X[: N // 10] *= 4.0
    X = np.clip(0.5 + X / 12.0, 0.0, 1.0)
    schema = Schema(tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(D)), (), LABEL)
    keys = rng.integers(0, 256, size=(N, 16), dtype=np.uint8)
    return ArrayRows(schema, X, np.zeros(N, dtype=np.int32), keys)


def make_rng(*name: object) -> np.random.Generator:
    digest = hashlib.blake2b("/".join(map(str, name)).encode(), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))


class Table:
    """One table with the fit of each number of components."""

    def __init__(self, population: str, name: str) -> None:
        self.rows, self.name = draw_table(population, name), f"{population}/{name}"
        self.fits: dict[int, dict[str, Any]] = {}

    def find_hits(self, setting: Setting, purpose: str) -> Floats:
        """Return for each person whether the nearest row is the right one, in one draw."""
        sanitizer = make_sanitizer(METHOD, setting.parameters)
        components = int(setting.parameters["components"])
        if components not in self.fits:
            scaling = fit_scaling(self.rows, sanitizer.scale)
            fitted = {**sanitizer.fit(self.rows), "scaling": scaling.as_dict()}
            self.fits[components] = dict(fitted)
        key = hashlib.blake2b(f"{self.name}/{purpose}".encode(), digest_size=32).digest()
        released = sanitizer.sanitize(self.rows, Noise(key), self.fits[components])
        Y = np.concatenate([block.X for block in released.rows.blocks()])
        centre, loadings = released.public.centre, released.public.loadings
        assert centre is not None and loadings is not None
        T = (self.rows.whole.X - centre) @ loadings
        distances = (Y**2).sum(axis=1)[None] - 2 * T @ Y.T
        hits: Floats = (distances.argmin(axis=1) == np.arange(N)).astype(np.float64)
        return hits

    def measure(self, setting: Setting, purpose: str, draws: int) -> Score:
        """Return the score of the attack over some draws, as an audit computes it."""
        hits = [self.find_hits(setting, f"{purpose}/{k}") for k in range(draws)]
        persons = np.mean(hits, axis=0)
        metric = METRICS[CHECK.split(".")[1]]
        figures = Figures(
            values=[float(each.mean()) for each in hits],
            n=N,
            baseline=1.0 / N,
            value_on=lambda records: float(persons[records].mean()),
            units=N,
            interval=partial(mean_interval, persons, bounds=metric.bounds),
        )
        rng = make_rng("jackknife")
        return make_score(metric, CHECK, figures, level=LEVEL, rng=rng, story="", epsilon=0.1)


def make_setting(components: int, b: float) -> Setting:
    return Setting(METHOD, {"components": components, "b": b, "basis": "private"})


@cache
def calibrate(population: str) -> tuple[tuple[float, ...], float]:
    """Return the noise of each number of components, and a limit below all true rates."""
    noises, limits = [], []
    for components in COMPONENTS:
        b = find_noise(population, components)
        setting = make_setting(components, b)
        rates = [
            Table(population, f"truth {i}").find_hits(setting, "truth").mean()
            for i in range(TRUTH_TABLES)
        ]
        error = float(np.std(rates) / np.sqrt(TRUTH_TABLES))
        limits.append(float(np.mean(rates)) - 1.0 / N - 2 * error)
        noises.append(b)
    return tuple(noises), min(limits)


def find_noise(population: str, components: int) -> float:
    """Return the noise whose rate is about the target, by bisection on a few tables."""
    tables = [Table(population, f"calibration {i}") for i in range(CALIBRATION_TABLES)]
    low, high = 0.012, 2.0
    for _ in range(9):
        b = float(np.sqrt(low * high))
        setting = make_setting(components, b)
        rate = np.mean([table.find_hits(setting, f"b {b}").mean() for table in tables]) - 1 / N
        low, high = (b, high) if rate > TARGET else (low, b)
    return low


@dataclass(frozen=True)
class Tune:
    """One simulated tune, with the outcome of each steward's release."""

    population: str
    number: int
    limit: float
    proposed: str  # title of the setting, "" for none
    outcomes: dict[str, str]  # of the stewards' releases; "": nothing was released


def simulate(population: str, number: int) -> Tune:
    """Simulate a tune on a new table, and the releases that follow."""
    noises, value = calibrate(population)
    limits = {CHECK: Limit(value, "study", "just below the truth")}
    policy = Policy((), limits)
    settings = [
        make_setting(components, b * step)
        for components, b in zip(COMPONENTS, noises, strict=True)
        for step in NOISE_STEPS
    ]
    table, use = Table(population, f"table {number}"), Utility({USE: 1.0})

    def try_setting(setting: Setting, round_: int, draws: int) -> Trial:
        score = table.measure(setting, f"tune {round_}", draws)
        scores = (score, make_use(setting))
        return Trial(setting, round_, N, scores, (judge(score, limits[CHECK]),))

    going, latest, finalists = settings, dict[str, Trial](), list[Trial]()
    for each in plan_rounds(len(settings), N, policy):
        batch = going[: each.settings]
        for setting in batch:
            latest[setting.digest] = try_setting(setting, each.number, each.policy.shadow_draws)
        ranked = rank_trials(list(latest.values()), use, limits, N)
        going = [trial.setting for trial in ranked if trial.setting in batch]
        finalists = [latest[setting.digest] for setting in batch] if each.is_last else []
    choice = choose_setting(finalists, use, limits)
    while len(finalists) < MAX_FINALISTS and not (choice and choice.has_margin):
        known = {trial.setting.digest for trial in finalists}
        rest = rank_trials(list(latest.values()), use, limits, N)
        other = next(one.setting for one in rest if one.setting.digest not in known)
        latest[other.digest] = try_setting(other, 4, policy.shadow_draws)
        finalists.append(latest[other.digest])
        choice = choose_setting(finalists, use, limits)
    lowest = min(latest.values(), key=lambda trial: trial.scores[0].value).setting
    released = {
        "no tune": settings[0],
        "proposed": choice.trial.setting if choice else None,
        "lowest risk": lowest,
    }
    outcomes = {
        who: "" if setting is None else judge_release(table, setting, limits[CHECK], policy)
        for who, setting in released.items()
    }
    return Tune(population, number, value, choice.trial.setting.title if choice else "", outcomes)


def judge_release(table: Table, setting: Setting, limit: Limit, policy: Policy) -> str:
    """Return the outcome of the verdict, on draws that no tune uses."""
    return judge_outcome(table.measure(setting, "verdict", policy.shadow_draws), limit)


def make_use(setting: Setting) -> Score:
    """Return a use that grows with the number of components and falls with the noise."""
    value = 0.5 + 0.04 * setting.parameters["components"] - 0.01 * setting.parameters["b"]
    return Score(USE, "utility", "up", value, value, value, N, 0.5, value, original=0.9)


def summarize(found: Sequence[Tune]) -> str:
    """Return wrong PASS rates as a Markdown table."""
    lines = [
        "| population | settings | tunes | released | wrong PASS | rate | 95 % interval |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for population in POPULATIONS:
        own = [tune for tune in found if tune.population == population]
        for who in STEWARDS if own else ():
            released = sum(bool(tune.outcomes[who]) for tune in own)
            wrong = sum(tune.outcomes[who] == "PASS" for tune in own)
            low, high = clopper_pearson(wrong, len(own), 0.95)
            lines.append(
                f"| {population} | {who} | {len(own)} | {released} | {wrong} | "
                f"{100 * wrong / len(own):.2f} % | {100 * low:.2f} to {100 * high:.2f} % |"
            )
    nominal = 100 * (1 - LEVEL) / 2
    return "\n".join([*lines, "", f"Nominal: {nominal:.2f} %."])


def main(arguments: Sequence[str]) -> int:
    """Simulate tunes that a file does not have yet, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--tunes", type=int, default=200, help="of each population")
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args(arguments)
    lines = given.results.read_text().splitlines() if given.results.exists() else []
    found = [Tune(**json.loads(line)) for line in lines]
    done = {(tune.population, tune.number) for tune in found}
    work = [(name, i) for i in range(given.tunes) for name in POPULATIONS if (name, i) not in done]
    with given.results.open("a") as file:
        for population, number in [] if given.summary else work:
            tune = simulate(population, number)
            found.append(tune)
            file.write(json.dumps(asdict(tune)) + "\n")
            file.flush()
    print(summarize(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
