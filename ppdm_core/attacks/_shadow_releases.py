"""Shadow releases: imitations from which an attacker learns what distinguishes members."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ppdm_core.attacks._membership_features import (
    Features,
    MembershipTables,
    Odds,
    compute_features,
)
from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.release import Response
from ppdm_core.numerics.kernel_model import KernelSetting
from ppdm_core.numerics.noise_distributions import NoiseDistribution, StudentT

Imitator = Callable[[Floats, Codes, np.random.Generator], tuple[Floats, Ints]]
# records and labels to a release of them, and the person behind each row

MAX_SHADOW_RECORDS = 2_000
_RIDGE = 1.0
_MAX_STEPS = 25


def make_noise_imitator(distribution: NoiseDistribution) -> Imitator:
    """Return an imitator that adds noise of scale 1 of this distribution."""

    def draw(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        if isinstance(distribution, StudentT):
            return np.asarray(rng.standard_t(distribution.nu, shape))
        samplers = {
            "laplace": lambda: rng.laplace(size=shape),
            "logistic": lambda: rng.logistic(size=shape),
            "normal": lambda: rng.standard_normal(shape),
            "uniform": lambda: rng.uniform(-1.0, 1.0, shape),
        }
        return np.asarray(samplers[distribution.name]())

    return lambda T, label, rng: (T + draw(T.shape, rng), np.arange(len(T)))


def make_resampling_imitator(around: KernelSetting) -> Imitator:
    """Return an imitator that resamples by the published rule, class by class."""

    def imitate(X: Floats, label: Codes, rng: np.random.Generator) -> tuple[Floats, Ints]:
        source = np.empty(len(X), dtype=np.int64)
        Y = np.empty_like(X)
        for code in np.unique(label).tolist():
            here = np.flatnonzero(label == code)
            spread = X[here] if len(here) > 1 else X
            h = around.rule.compute_from_records(
                spread.std(axis=0, ddof=1), len(here), around.widths
            )
            source[here] = rng.choice(here, len(here))
            steps = np.median(rng.uniform(-1.0, 1.0, (3, *X[here].shape)), axis=0)  # Epanechnikov
            Y[here] = np.clip(X[source[here]] + h * steps, around.low, around.high)
        has_step = around.step > 0
        Y[:, has_step] = np.rint(Y[:, has_step] / around.step[has_step]) * around.step[has_step]
        return Y, source

    return imitate


def randomize_responses(
    cells: Codes, responses: tuple[Response, ...], rng: np.random.Generator
) -> Codes:
    """Keep each code with its published probability, else draw any other one."""
    given = cells.copy()
    for j, response in enumerate(responses):
        k, first = response.column.k, -int(response.column.missing)
        moved = np.where(
            rng.random(len(cells)) < response.keep_probability,
            0,
            rng.integers(1, max(k, 2), len(cells)),
        )
        given[:, j] = (cells[:, j] - first + moved) % k + first
    return given


def learn_shadow_score(
    tables: MembershipTables,
    found: Features,
    odds: Odds | None,
    imitate: Imitator,
    responses: tuple[Response, ...],
    times: int,
    rng: np.random.Generator,
) -> Floats:
    """Return membership scores of the targets, learned on shadow releases of the reference."""
    features, is_member = [], []
    for _ in range(times):
        order = rng.permutation(len(tables.R))[:MAX_SHADOW_RECORDS]
        members, others, rest = np.array_split(order, 3)
        R, theirs = tables.R, tables.reference_label
        Z, source = imitate(R[members], theirs[members], rng)
        asked = np.concatenate([members, others])
        cells = tables.reference_codes
        imitated = MembershipTables(
            Z=Z,
            label=theirs[members][source],
            T=R[asked],
            target_label=theirs[asked],
            R=R[rest],
            reference_label=theirs[rest],
            unit=tables.unit,
            responses=randomize_responses(cells[members][source], responses, rng),
            target_codes=cells[asked],
            reference_codes=cells[rest],
        )
        features.append(_tabulate(compute_features(imitated, odds)))
        is_member.append(np.arange(len(asked)) < len(members))
    weights = _fit_logistic(np.vstack(features), np.concatenate(is_member))
    score: Floats = _tabulate(found) @ weights
    return score


def _tabulate(found: Features) -> Floats:
    """Return the features as standardised columns, because a shadow release is smaller."""
    columns = {name: _standardize(score) for name, score in found.items()}
    if "likelihood" in columns:
        columns["together"] = _standardize(columns["likelihood"] * columns["isolation"])
    return np.column_stack([*columns.values(), np.ones(len(next(iter(columns.values()))))])


def _standardize(score: Floats) -> Floats:
    """Scale by median and quartiles, so that a few outliers do not flatten the others."""
    low, middle, high = np.quantile(score, [0.25, 0.5, 0.75])
    width = max(float(high - low), 1e-9 * max(1.0, abs(float(middle))))
    return np.asarray(np.clip((score - middle) / width, -10.0, 10.0))


def _fit_logistic(A: Floats, answer: Floats) -> Floats:
    """Return the weights of a logistic regression with a small ridge, by Newton's steps."""
    w = np.zeros(A.shape[1])
    for _ in range(_MAX_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(A @ w, -30.0, 30.0)))
        gradient = A.T @ (answer - p) - _RIDGE * w
        curvature = (A * (p * (1.0 - p))[:, None]).T @ A + _RIDGE * np.eye(len(w))
        step = np.linalg.solve(curvature, gradient)
        w = w + step
        if np.abs(step).max() < 1e-8:
            break
    return w
