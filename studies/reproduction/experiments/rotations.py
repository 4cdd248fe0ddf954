"""P1: mining after rotations, and attacks on them by known records."""

from __future__ import annotations

import math

import numpy as np

from ppdm_core.attacks.known_pairs import breach_probability, estimate_from_pairs
from ppdm_core.attacks.known_sample_pca import find_principal_axes
from ppdm_core.metrics._clusters import run_kmeans
from ppdm_core.metrics.adjusted_rand import adjusted_rand
from ppdm_core.miners import MINERS
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import KnownRows
from studies.reproduction.measurement import Measurement
from studies.reproduction.releases import Quantities, append, release, split_records
from studies.reproduction.tables import load, make_rows

SIMULATED_DIRECTIONS = 100_000
RADII = (0.2, 0.5, 1.0, 1.5)  # eps |x| of a record at distance 1
ROUNDING = 1e-12
BREACH = 0.1  # eps of the attack on what an owner did not withhold
ATTACKS = 2_000  # simulated maps


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
            certain = float(np.mean(error <= 2.0 + ROUNDING))
            append(found, f"simulated at half the radius/D={freedom}", certain)
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


def withheld_records(job: Measurement) -> Quantities:
    """Attack what is left after an owner has withheld records that are near to the known ones.

    The attacker takes the row with the largest probability by the formula, and a random map that
    agrees with the known records: the image of what is unknown of it has a uniform direction.
    """
    table, found = load(job.table), Quantities()
    for draw in range(job.draws):
        rng = np.random.default_rng([draw, 35])
        d = table.X.shape[1]
        known = rng.permutation(table.n)[: max(1, d // 2)]
        made = release(table.make_rows(), "random_rotation", {"scale": "none"}, draw)
        distance, length = measure_distances(made.Y, known), np.linalg.norm(made.Y, axis=1)
        kept = np.flatnonzero(distance >= BREACH * length)  # where the formula gives at most 1/3
        append(found, "share of records withheld", 1.0 - len(kept) / table.n)
        if not len(kept):
            append(found, "breaches after withholding", 0.0)
            continue
        target = kept[np.argmin(distance[kept] / length[kept])]
        image = rng.standard_normal((ATTACKS, d - len(known)))
        image *= distance[target] / np.linalg.norm(image, axis=1, keepdims=True)
        image[:, 0] -= distance[target]
        is_breach = np.linalg.norm(image, axis=1) <= BREACH * length[target]
        append(found, "breaches after withholding", float(np.mean(is_breach)))
    return found
