"""P4: non-metric scaling compared with rotation and projection, and attacked."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ppdm_core.attacks.known_pairs import estimate_from_pairs
from ppdm_core.attacks.known_sample_pca import KnownSamplePca
from ppdm_core.metrics._comparison import ReleaseComparison
from ppdm_core.metrics._neighbourhoods import find_neighbourhoods
from ppdm_core.metrics._pairs import choose_pairs, pair_distances
from ppdm_core.metrics.class_compactness import average_classes
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import KnownRows
from ppdm_core.model.errors import BadInput
from ppdm_core.numerics.neighbours import find_nearest_rows
from studies.reproduction.measurement import Measurement
from studies.reproduction.releases import (
    Quantities,
    ReleasedTable,
    append,
    correlate_ranks,
    cross_validate,
    cross_validate_ties,
    find_fold_labels,
    release,
)
from studies.reproduction.tables import Table, load

NEIGHBOURS = range(3, 11)
LANDMARKS = 1_000
KNOWN_RECORDS = 50
EXACT = 1e-6  # of the distance from the mean
SHOWN_TABLE = "wine"  # figure 9
DIMENSIONS = {"wine": (1, 2, 3, 5, 8, 10, 12), "segmentation_test": (1, 2, 3, 5, 8, 10, 14, 17)}


def embed(
    table: Table, dimensions: int, *, full: bool, landmarks: int = LANDMARKS
) -> ReleasedTable:
    """Return the layout of a table; only its direction is random, so that one draw is enough."""
    return lay_out(table.name, dimensions, 10_000 if full else landmarks)


@lru_cache(maxsize=2)  # three experiments use the same layouts
def lay_out(name: str, dimensions: int, landmarks: int) -> ReleasedTable:
    """Return the layout of a public table."""
    parameters = {"dimensions": dimensions, "landmarks": landmarks, "scale": "zscore"}
    return release(load(name).make_rows(), "nonmetric_mds", parameters, 0)


def embedded_neighbours(job: Measurement) -> Quantities:
    """Compare k nearest neighbours in the release and the original; figure 5."""
    table, found = load(job.table), Quantities()
    made = embed(table, table.X.shape[1] - 1, full=job.is_full)
    for draw in range(job.draws):
        near = [find_fold_labels(Z, made.label, draw) for Z in (made.X, made.Y)]
        before, after = (cross_validate(each, made.label) for each in near)
        for k in NEIGHBOURS:
            append(found, f"accuracy original/k={k}", before[k - 1])
            append(found, f"accuracy release/k={k}", after[k - 1])
            append(found, f"release minus original/k={k}", after[k - 1] - before[k - 1])
        original, released = (cross_validate_ties(each[:, :4], made.label) for each in near)
        for rule, accuracy in original.items():
            change = released[rule] - accuracy
            append(found, f"accuracy original, ties {rule}/k=4", accuracy)
            append(found, f"accuracy release, ties {rule}/k=4", released[rule])
            append(found, f"release minus original, ties {rule}/k=4", change)
        append(found, "error at k 10 minus k 3", before[2] - before[9])
        append(found, "error at k 10 minus k 8", before[7] - before[9])
    return found


def layout_quality(job: Measurement) -> Quantities:
    """Compare distances, neighbours and classes after three methods; figures 4, 6 and 7."""
    table, found = load(job.table), Quantities()
    d = table.X.shape[1]
    scaled = embed(table, d - 1, full=job.is_full)
    for draw in range(job.draws):
        rows, rng = table.make_rows(), np.random.default_rng([draw, 61])
        projection = {"components": d - 1, "scale": "zscore"}
        layouts = {
            "scaling": scaled.Y,
            "rotation": release(rows, "random_rotation", {"scale": "zscore"}, draw).Y,
            "projection": release(rows, "random_projection", projection, draw).Y,
        }
        i, j = choose_pairs(table.n, rng)
        before = pair_distances(scaled.X, i, j)
        some = np.sort(rng.permutation(table.n)[: table.n // 2])
        near = find_neighbours(scaled.X, some)
        compact = measure_compactness(near, scaled.label, some)
        kept, changes, classes, scatter = {}, {}, {}, {}
        if draw == 0 and job.table == SHOWN_TABLE:
            show_layouts(found, {"original": scaled.X, **layouts}, scaled.label)
        for name, Y in layouts.items():
            distances = pair_distances(Y, i, j)
            changes[name] = float(np.mean(np.abs(before - distances)) / before.mean())
            scatter[name] = 1.0 - float(np.corrcoef(before, distances)[0, 1] ** 2)
            append(found, f"unexplained share of distances, {name}", scatter[name])
            after = find_neighbours(Y, some)
            kept[name] = [count_kept(near, after, k) for k in NEIGHBOURS]
            change = measure_compactness(after, scaled.label, some) - compact
            append(found, f"change of distances, {name}", changes[name])
            classes[name] = float(change.mean())
            append(found, f"change of compactness, {name}", classes[name])
            append(found, f"neighbours kept, {name}/k=mean", float(np.mean(kept[name])))
            for k, share in zip(NEIGHBOURS, kept[name], strict=True):
                append(found, f"neighbours kept, {name}/k={k}", share)
            for k, value in zip(NEIGHBOURS, change + compact, strict=True):
                append(found, f"compactness, {name}/k={k}", value)
        for k, value in zip(NEIGHBOURS, compact, strict=True):
            append(found, f"compactness, original/k={k}", value)
        append(found, "compactness at k 3 minus k 10", compact[0] - compact[-1])
        for other in ("rotation", "projection"):
            gain = classes["scaling"] - classes[other]
            append(found, f"compactness, scaling minus {other}", gain)
        gap = scatter["projection"] - scatter["scaling"]
        append(found, "unexplained share of distances, projection minus scaling", gap)
        means = {name: float(np.mean(shares)) for name, shares in kept.items()}
        for one, other in (("projection", "scaling"), ("rotation", "scaling")):
            gap = changes[one] - changes[other]
            append(found, f"change of distances, {one} minus {other}", gap)
        for one, other in (
            ("rotation", "scaling"),
            ("rotation", "projection"),
            ("scaling", "projection"),
        ):
            append(found, f"neighbours kept, {one} minus {other}", means[one] - means[other])
        append(found, "neighbours kept, k 10 minus k 3", kept["scaling"][-1] - kept["scaling"][0])
        tied = count_kept_with_ties(scaled, some)
        lost = max(1.0 - kept["scaling"][0], 1e-12)
        append(found, "share of lost neighbours that are no ties", (1.0 - tied) / lost)
    return found


def show_layouts(found: Quantities, layouts: dict[str, Floats], label: Ints) -> None:
    """Keep the first two principal components of each layout by class, for figure 9."""
    for name, Z in layouts.items():
        centred = Z - Z.mean(axis=0)
        T = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
        for code in np.unique(label):
            for axis in range(2):
                key = f"shown, {name}, class {code + 1}, axis {axis + 1}"
                found[key] = T[label == code, axis].tolist()


def find_neighbours(Z: Floats, some: Ints) -> Ints:
    """Return the ten nearest other rows of some rows, nearest first."""
    place, _ = find_nearest_rows(Z[some], Z, NEIGHBOURS[-1] + 1)
    is_own = place == some[:, None]
    is_own[~is_own.any(axis=1), -1] = True  # an equal row took its place
    return np.asarray(place[~is_own].reshape(len(some), -1))


def count_kept(before: Ints, after: Ints, k: int) -> float:
    """Return the mean share of the k nearest rows that are still among them, equation 10."""
    same = before[:, :k, None] == after[:, None, :k]
    return float(np.mean(same.any(axis=2)))


def count_kept_with_ties(made: ReleasedTable, some: Ints) -> float:
    """Return the same for k = 3, where rows that tied for a place are equivalent."""
    comparison = ReleaseComparison(made.X, made.label.astype(np.int32), made.Y, made.public)
    preserved = find_neighbourhoods(comparison, some, NEIGHBOURS[0]).preserved
    assert preserved is not None
    return float(preserved.mean())


def measure_compactness(near: Ints, label: Ints, some: Ints) -> Floats:
    """Return the share of k nearest rows with the same class, mean over classes, for each k."""
    same = label[near] == label[some][:, None]
    return np.array(
        [
            average_classes(label[some].astype(np.int32), same[:, :k].mean(axis=1))
            for k in NEIGHBOURS
        ]
    )


def dimension_sweep(job: Measurement) -> Quantities:
    """Compare accuracy after scaling and after projection over dimensions; figure 8."""
    table, found = load(job.table), Quantities()
    layouts = {}
    for p in DIMENSIONS[job.table]:
        try:
            layouts[p] = embed(table, p, full=job.is_full, landmarks=500)
        except BadInput:  # the method refuses layouts in which most records coincide
            append(found, f"refused layouts/dimensions={p}", 1.0)
    counts = list(layouts)
    for draw in range(job.draws):
        gains, accuracies = [], []
        for p, made in layouts.items():
            projected = release(
                table.make_rows(), "random_projection", {"components": p, "scale": "zscore"}, draw
            )
            ours, other = (
                cross_validate(find_fold_labels(Z, made.label, draw, 4), made.label)[3]
                for Z in (made.Y, projected.Y)
            )
            append(found, f"accuracy scaling/dimensions={p}", ours)
            append(found, f"accuracy projection/dimensions={p}", other)
            append(found, f"scaling minus projection/dimensions={p}", ours - other)
            gains.append(ours - other)
            accuracies.append(other)
        is_low = np.array(counts) < 10
        difference = float(np.mean(np.array(gains)[is_low]) - np.mean(np.array(gains)[~is_low]))
        append(found, "advantage below 10 dimensions minus above", difference)
        correlation = correlate_ranks(counts, accuracies)
        append(found, "rank correlation of accuracy and dimensions", correlation)
    return found


def embedding_attacks(job: Measurement) -> Quantities:
    """Attack the layout with known records, and with a sample of the released records."""
    table, found = load(job.table), Quantities()
    made = embed(table, table.X.shape[1] - 1, full=job.is_full)
    explained = explain_variance(made.X, made.Y)
    for draw in range(job.draws):
        rng = np.random.default_rng([draw, 62])
        known = rng.permutation(table.n)[:KNOWN_RECORDS]
        others = np.setdiff1d(np.arange(table.n), known)
        guess = np.linalg.norm(made.X - made.X.mean(axis=0), axis=1)[others]
        pairs = estimate_from_pairs(
            made.make_view(), KnownRows(made.X[known], known), rng
        ).candidates
        sampled = KnownSamplePca().attack(made.make_view(sample=made.X[known]), rng).candidates
        for name, candidates in (("known pairs", pairs), ("known sample", sampled)):
            errors = [
                np.linalg.norm(made.X - X_hat, axis=1)[others] for X_hat in candidates.values()
            ]
            least = min(float(each.mean()) for each in errors)
            append(found, f"error of {name} over mean", least / float(guess.mean()))
            exact = max(float(np.mean(each <= EXACT * guess)) for each in errors)
            append(found, f"records placed exactly by {name}", exact)
    append(found, "share of variance explained by the release", explained)
    return found


def explain_variance(X: Floats, Y: Floats) -> float:
    """Return the share of the variance of X that a linear function of Y explains."""
    A = np.column_stack([Y, np.ones(len(Y))])
    fitted = A @ np.linalg.lstsq(A, X, rcond=None)[0]
    return 1.0 - float(np.sum((X - fitted) ** 2) / np.sum((X - X.mean(axis=0)) ** 2))
