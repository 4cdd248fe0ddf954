"""P1: attacks on rotations by known records and by a known sample."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np

from ppdm_core.attacks._axis_signs import choose_signs_jointly
from ppdm_core.attacks.known_pairs import breach_probability, estimate_from_pairs
from ppdm_core.attacks.known_sample_pca import (
    choose_exhaustive_signs,
    find_principal_axes,
    match_axes,
)
from ppdm_core.metrics._clusters import run_kmeans
from ppdm_core.metrics.adjusted_rand import adjusted_rand
from ppdm_core.miners import MINERS
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import KnownRows
from ppdm_core.model.release import PublicParameters
from ppdm_core.numerics.random_orthogonal import random_orthogonal
from studies.reproduction.measurement import Measurement
from studies.reproduction.releases import (
    Quantities,
    ReleasedTable,
    append,
    release,
    split_records,
)
from studies.reproduction.tables import load, make_rows

COMPARED_ROWS = 5_000  # of the release, with at most 250 sampled records
TIMED_RECORDS, TIMED_SAMPLE, DIMENSIONS = 5_000, 250, (2, 4, 6, 8, 10, 12)
SIMULATED_DIRECTIONS = 100_000
RADII = (0.2, 0.5, 1.0, 1.5)  # eps |x| of a record at distance 1
ROTATED = PublicParameters("random_rotation", "rotated", (), preserves_distances=True)


def rotation_mining(job: Measurement) -> Quantities:
    """Compare clusters, neighbours and covariance before and after a rotation."""
    table, found = load(job.table), Quantities()
    for draw in range(job.draws):
        made = release(table.make_rows(), "random_rotation", {}, draw)
        count = int(made.label.max()) + 1
        clusters = run_kmeans(made.X, count), run_kmeans(made.Y, count)
        append(found, "agreement of clusters", adjusted_rand(*clusters))
        train, test = split_records(table.n, 0.3, draw)
        answers = [
            MINERS["knn"](k=5).fit(Z[train], made.label[train]).predict(Z[test])
            for Z in (made.X, made.Y)
        ]
        append(found, "agreement of neighbours", float(np.mean(answers[0] == answers[1])))
        assert made.secret_map is not None
        (before, Z), (after, W) = find_principal_axes(made.X), find_principal_axes(made.Y)
        append(found, "difference of eigenvalues", float(np.abs(before - after).max() / before[0]))
        cosines = np.abs(np.einsum("ij,ij->j", made.secret_map[1].T @ Z, W))
        append(found, "difference of eigenvectors", float(np.abs(1.0 - cosines).max()))
    return found


def known_rows(job: Measurement) -> Quantities:
    """Attack a rotation with known records and their rows."""
    table, found = load(job.table), Quantities()
    for draw in range(job.draws):
        rng = np.random.default_rng([draw, 31])
        d = table.X.shape[1]
        known = rng.permutation(table.n)[:d]
        few = known[: max(2, d // 2)]
        mixed = (table.X[few[0]] + table.X[few[1:]]) / 2  # records in the span of known ones
        X = np.vstack([table.X, mixed])
        label = np.concatenate([table.label, np.zeros(len(mixed), dtype=np.int64)])
        made = release(make_rows(X, label), "random_rotation", {"scale": "none"}, draw)
        view = made.make_view()
        unknown = np.setdiff1d(np.arange(len(X)), known)
        all_known = estimate_from_pairs(view, KnownRows(made.X[known], known), rng)
        error = relative_errors(made.X, all_known.candidates["uniform"])[unknown]
        append(found, "error with d known records", float(error.mean()))
        some = estimate_from_pairs(view, KnownRows(made.X[few], few), rng)
        in_span = relative_errors(made.X, some.candidates["uniform"])[table.n :]
        append(found, "breaches in the span", float(np.mean(in_span <= 1e-6)))
        gaps = [measure_distances(Z, few) for Z in (made.X, made.Y)]
        length = np.linalg.norm(made.X, axis=1)
        append(found, "difference of distances", float(np.abs((gaps[0] - gaps[1]) / length).max()))
    return found


def relative_errors(X: Floats, X_hat: Floats) -> Floats:
    """Return |x - x_hat| / |x| of each record."""
    return np.asarray(np.linalg.norm(X - X_hat, axis=1) / np.linalg.norm(X, axis=1))


def measure_distances(Z: Floats, known: Ints) -> Floats:
    """Return the distance of each row from the span of the known ones."""
    Q = np.linalg.qr(Z[known].T)[0]
    return np.asarray(np.linalg.norm(Z - (Z @ Q) @ Q.T, axis=1))


def compute_paper_breach(radius: float, distance: float) -> float:
    """Return the probability of equation 2."""
    return 2 / math.pi * math.asin(radius / (2 * distance)) if radius < 2 * distance else 1.0


def breach_formula(job: Measurement) -> Quantities:
    """Compare equation 2 with simulated maps: the image of a direction is a uniform direction."""
    found = Quantities()
    for freedom in (1, 2, 3, 5, 10):
        for draw in range(job.draws):
            rng = np.random.default_rng([draw, freedom])
            image = rng.standard_normal((SIMULATED_DIRECTIONS, freedom))
            image /= np.linalg.norm(image, axis=1, keepdims=True)
            error = np.linalg.norm(image - np.eye(freedom)[0], axis=1)
            simulated = np.array([np.mean(error <= radius) for radius in RADII])
            paper = np.array([compute_paper_breach(radius, 1.0) for radius in RADII])
            exact = breach_probability(1.0, RADII, freedom)
            append(found, f"simulated minus paper/D={freedom}", np.abs(simulated - paper).max())
            append(found, f"simulated minus exact/D={freedom}", np.abs(simulated - exact).max())
        best = float(breach_probability(1.0, 1.0, freedom, "projection"))
        gain = best - compute_paper_breach(1.0, 1.0)
        append(found, f"projection estimate minus paper/D={freedom}", gain)
    distances = np.array([4.0, 8.0, 16.0, 32.0])
    for freedom in (2, 3, 5):
        chance = breach_probability(distances, 1.0, freedom)
        exponent = np.polyfit(np.log(distances), np.log(chance), 1)[0]
        append(found, f"exponent of distance/D={freedom}", float(exponent))
    return found


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
        append(found, "error at the smallest minus the largest share", errors[0] - errors[-1])
        append(found, "rank correlation of error and share", correlate_ranks(shares, errors))
    return found


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


def correlate_ranks(a: Sequence[float], b: Sequence[float]) -> float:
    """Return Spearman's rank correlation."""
    from scipy.stats import spearmanr

    return float(spearmanr(a, b).statistic)


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
