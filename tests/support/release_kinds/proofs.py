"""Proofs that a release is unsafe: attackers that know its kind, and what they reach.

The attackers are independent of the product's attacks. A proof states what its attacker holds:

* ``full records``: complete records of persons, without their rows;
* ``60 known pairs``: also the rows of 60 of them;
* ``half known``: also the rows of half of them;
* ``listed generators and seeds``: 60 known pairs, and the noise can only come from numpy or from
  the standard library with a seed below 10,000.

The rows are in the order of the release, the persons in a random order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from ppdm.policies import load_policy
from ppdm_core.model.arrays import Bools, Floats, Ints

Model = Literal["full records", "60 known pairs", "half known", "listed generators and seeds"]
Goal = Literal["link", "link the surest", "recover", "find members"]
KNOWN_PAIRS = 60
EPSILON = 0.1  # relative error up to which a record is recovered
FALSE_ALARM_SHARE, MIN_FALSE_ALARMS = 0.01, 5
LIMITS: dict[Goal, str] = {
    "link": "record_linkage.rate",
    "link the surest": "record_linkage.rate",
    "recover": "known_pairs.breach_rate",
    "find members": "membership.true_positive_rate",
}


@dataclass(frozen=True, eq=False)
class View:
    """What the attacker of a proof gets."""

    Y: Floats  # (m, s) as released
    persons: Floats  # (t, d) complete records
    known: Floats  # (k, d) records whose row is known
    rows: Ints  # (k,) these rows


@dataclass(frozen=True, eq=False)
class Proof:
    """An attacker and its goal.

    The answer is for "link" a row for each person, for "link the surest" also how sure it is, for
    "recover" a record for each row, and for "find members" a score for each person.
    """

    model: Model
    goal: Goal
    attack: Callable[[View], Any]


@dataclass(frozen=True)
class Evidence:
    """What an attacker reached, compared with the limit of the default policy."""

    value: float
    baseline: float
    limit: float

    @property
    def is_unsafe(self) -> bool:
        """Return whether the excess over the baseline is at least twice the limit."""
        return self.value - self.baseline >= 2 * self.limit


@cache
def read_limit(name: str) -> float:
    """Return a limit of the default policy."""
    return float(load_policy(None).limits[name].value)


def collect_evidence(
    proof: Proof, X: Floats, Y: Floats, others: Floats, rng: np.random.Generator, source: Ints
) -> Evidence:
    """Run the attacker of a proof, and compare its answer with the truth.

    ``source`` is the record of each row; membership needs none.
    """
    n = len(X)
    row_of = np.argsort(source, kind="stable")  # of each record
    known, unknown = np.split(rng.permutation(n), [count_known(proof.model, n)])
    persons = X[unknown]
    if proof.goal == "find members":
        persons = np.vstack([persons, others])
    order = rng.permutation(len(persons))
    answer = proof.attack(View(Y, persons[order], X[known], row_of[known]))
    if proof.goal == "recover":
        value, baseline = measure_recovery(X, np.asarray(answer)[row_of], unknown)
    elif proof.goal == "find members":
        value, baseline = measure_membership(np.asarray(answer), order < len(unknown))
    else:
        value, baseline = measure_links(answer, row_of[unknown][order], len(Y))
    return Evidence(value, baseline, read_limit(LIMITS[proof.goal]))


def count_known(model: Model, n: int) -> int:
    """Return how many rows the attacker knows."""
    if model == "full records":
        return 0
    return n // 2 if model == "half known" else min(KNOWN_PAIRS, n // 2)


def measure_links(answer: Any, truth: Ints, rows: int) -> tuple[float, float]:
    """Return the share of persons whose row was found, of the surest tenth if that is asked."""
    if isinstance(answer, tuple):
        found, confidence = answer
        surest = np.argsort(-confidence, kind="stable")[: max(1, len(truth) // 10)]
        found, truth = found[surest], truth[surest]
    else:
        found = answer
    return float(np.mean(found == truth)), 1.0 / rows


def measure_recovery(X: Floats, X_hat: Floats, unknown: Ints) -> tuple[float, float]:
    """Return the shares of records recovered by the attacker, and by one guess for all."""
    low, width = X.min(axis=0), np.maximum(np.ptp(X, axis=0), 1e-300)
    X, X_hat = (X - low) / width, (X_hat - low) / width

    def measure(guess: Floats) -> float:
        error = np.linalg.norm(X[unknown] - guess, axis=1)
        return float(np.mean(error <= EPSILON * np.linalg.norm(X[unknown], axis=1)))

    guesses = (X.mean(axis=0), np.median(X, axis=0))
    return measure(X_hat[unknown]), max(measure(guess) for guess in guesses)


def measure_membership(score: Floats, is_member: Bools) -> tuple[float, float]:
    """Return the share of members found at few false alarms, ties broken at random, and the latter.

    1 % of the others may be taken for members, or 5 of them if that is more.
    """
    allowed = max(FALSE_ALARM_SHARE, MIN_FALSE_ALARMS / np.sum(~is_member))
    others = np.sort(score[~is_member])[::-1]
    threshold = others[int(allowed * len(others))]
    above, tied = score > threshold, score == threshold
    left = allowed - np.mean(above[~is_member])
    share = left / max(float(np.mean(tied[~is_member])), left)
    return float(np.mean(above[is_member]) + share * np.mean(tied[is_member])), float(allowed)
