"""P1: attacks on rotations by a known sample."""

from __future__ import annotations

import math
import time

import numpy as np

from ppdm_core.attacks._axis_signs import choose_signs_jointly
from ppdm_core.attacks.known_sample_pca import choose_exhaustive_signs, match_axes
from ppdm_core.model.arrays import Floats
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.random_orthogonal import random_orthogonal
from studies.reproduction.experiments.rotations import relative_errors
from studies.reproduction.measurement import Measurement
from studies.reproduction.releases import (
    Quantities,
    ReleasedTable,
    append,
    correlate_ranks,
)
from studies.reproduction.tables import load, make_rows

COMPARED_ROWS = 5_000  # of the release, with at most 250 sampled records
TIMED_RECORDS, TIMED_SAMPLE, DIMENSIONS = 5_000, 250, (2, 4, 6, 8, 10, 12)
SHOWN_SHARE, SHOWN_RECORDS = 0.05, 100
ROTATED = PublicParameters("random_rotation", "rotated", (), preserves_distances=True)


def recover_from_sample(X: Floats, sample: Floats, Y: Floats, rng: np.random.Generator) -> Floats:
    """Return the estimates of algorithm 4.2.1, all signs tried by the energy distance."""
    made = ReleasedTable(
        X=X,
        label=np.zeros(len(X), dtype=np.int64),
        Y=Y,
        row_label=np.zeros(len(X), dtype=np.int64),
        source=np.arange(len(X)),
        public=ROTATED,
        schema=make_rows(X, np.zeros(len(X), dtype=np.int64)).schema,
        secret_map=None,
        fitted={},
        sanitizer=None,
    )
    axes = match_axes(made.make_view(sample=sample), sample)
    signs = choose_exhaustive_signs(axes, min(COMPARED_ROWS, len(Y)), rng)
    return np.asarray(Y @ (axes.W * signs) @ axes.Z.T)


def known_sample(job: Measurement) -> Quantities:
    """Attack a rotation with samples of several sizes; figures 1 to 4."""
    found, shares = Quantities(), job.options["shares"]
    for draw in range(job.draws):
        rng = np.random.default_rng([draw, 32])
        table = load(job.table, draw)
        d = table.X.shape[1]
        M = random_orthogonal(d, np.random.default_rng(5))  # the same in all trials
        errors = []
        for share in shares:
            X, sample = draw_sample(job.table, table.X, share, draw, rng)
            X_hat = recover_from_sample(X, sample, X @ M.T, rng)
            errors.append(float(relative_errors(X, X_hat).mean()))
            append(found, f"relative error/share={share:g}", errors[-1])
            if draw == 0 and share == SHOWN_SHARE:
                show_records(found, X, X @ M.T, X_hat)
        append(found, "error at the smallest minus the largest share", errors[0] - errors[-1])
        append(found, "rank correlation of error and share", correlate_ranks(shares, errors))
    return found


def show_records(found: Quantities, X: Floats, Y: Floats, X_hat: Floats) -> None:
    """Keep the first records with their images and estimates, for figures 1 and 3."""
    for name, Z in (("original", X), ("released", Y), ("recovered", X_hat)):
        for column in range(X.shape[1]):
            found[f"shown, {name}, column {column + 1}"] = Z[:SHOWN_RECORDS, column].tolist()


def draw_sample(
    name: str, X: Floats, share: float, draw: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return original records and a sample that is disjoint from them."""
    if name == "normal_2d":
        other = load(name, 1_000 + draw).X
        return X, other[: max(2, round(share * len(X)))]
    order = rng.permutation(len(X))
    n = round(len(X) / (1 + share))
    return X[order[:n]], X[order[n:]]


def known_sample_limits(job: Measurement) -> Quantities:
    """Attack laws for which the attack may fail, and the proposed remedy."""
    found = Quantities()
    distinct, close = np.sqrt([8.0, 4.0, 2.0, 1.0]), np.sqrt([4.03, 4.02, 4.01, 4.0])
    for draw in range(job.draws):
        rng = np.random.default_rng([draw, 33])
        M = random_orthogonal(4, rng)
        normal, other = rng.standard_normal((1_000, 4)), rng.standard_normal((200, 4))
        skewed, sample = rng.exponential(1.0, (1_000, 4)), rng.exponential(1.0, (200, 4))
        error = attack_by_sample(normal, other, M, draw)
        append(found, "relative error, standard normal", error)
        error = attack_by_sample(normal * distinct, other * distinct, M, draw)
        append(found, "relative error, centred normal", error)
        X, known = skewed * distinct, sample * distinct
        gap = attack_by_sample(skewed * close, sample * close, M, draw)
        gap -= attack_by_sample(X, known, M, draw)
        append(found, "error, close minus distinct eigenvalues", gap)
        wide = rng.standard_normal((400, 4)) / 20.0  # 400 directions keep all distances
        guess = np.broadcast_to(known.mean(axis=0), X.shape)
        ratio = attack_by_sample(X, known, wide, draw) / float(relative_errors(X, guess).mean())
        append(found, "error after projection over guessing the mean", ratio)
    return found


def attack_by_sample(X: Floats, sample: Floats, map: Floats, draw: int) -> float:
    """Return the mean relative error of the attack on records that a linear map moved."""
    X_hat = recover_from_sample(X, sample, X @ map.T, np.random.default_rng([draw, 34]))
    return float(relative_errors(X, X_hat).mean())


def sign_search_times(job: Measurement) -> Quantities:
    """Measure the processor time of trying all signs."""
    found = Quantities()
    for draw in range(job.draws):
        seconds = []
        for d in DIMENSIONS:
            rng = np.random.default_rng([draw, d])
            A, B = (rng.standard_normal((n, d)) for n in (TIMED_SAMPLE, TIMED_RECORDS))
            start = time.process_time()
            choose_signs_jointly(A, B, np.ones(d), np.arange(d))
            seconds.append(time.process_time() - start)
            append(found, f"seconds/dimensions={d}", seconds[-1])
        # The shortest searches are mostly overhead.
        slope = np.polyfit(DIMENSIONS[-3:], np.log(seconds[-3:]), 1)[0]
        append(found, "factor for each dimension", math.exp(slope))
    return found
