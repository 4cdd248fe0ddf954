"""P0: accuracy and average privacy of components with Laplace noise, and of its rivals."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from ppdm_core.miners import MINERS
from ppdm_core.model.arrays import Floats
from ppdm_core.model.rows import ArrayRows
from ppdm_core.numerics.linear_map import invert
from studies.classifier_accuracy import compute_accuracy, draw_task, measure_classifier
from studies.reproduction.measurement import Measurement
from studies.reproduction.releases import (
    Quantities,
    ReleasedTable,
    append,
    filter_privacy,
    measure_privacy,
    release,
    release_laplace,
    split_records,
)
from studies.reproduction.tables import load

NOISE_LEVELS = (0.1, 0.2, 0.3)
TEST_SHARE = 0.1
DEVIATIONS = (0.1, 0.25, 0.5)  # of the compared additive noise


def laplace_mining(job: Measurement) -> Quantities:
    """Compare the radius with k = 5 and with the best k; figure 9."""
    found = Quantities()
    for draw in range(job.draws):
        rows = load(job.table, draw, full=job.is_full).make_rows()
        for b in NOISE_LEVELS:
            task = draw_task(rows, b, draw, TEST_SHARE)
            radius, best, five = (
                measure_classifier(task, name)["accuracy"] for name in ("radius", "best k", "k = 5")
            )
            model = MINERS["knn"](k=5, weights="uniform").fit(task.rows, task.codes)
            plain = compute_accuracy(model.predict(task.queries), task.true_classes)["accuracy"]
            append(found, f"accuracy radius/b={b:g}", radius)
            append(found, f"accuracy best k/b={b:g}", best)
            append(found, f"accuracy k 5/b={b:g}", five)
            append(found, f"radius minus best k/b={b:g}", radius - best)
            append(found, f"radius minus k 5/b={b:g}", radius - five)
            append(found, f"weighted minus plain k 5/b={b:g}", five - plain)
    gains = [found[f"radius minus best k/b={b:g}"] for b in NOISE_LEVELS]
    found["radius minus best k, best b"] = max(gains, key=sum)
    return found


def component_counts(job: Measurement) -> Quantities:
    """Compare numbers of components, at b = 0.2."""
    rows, found = load(job.table).make_rows(), Quantities()
    for draw in range(job.draws):
        accuracy = {
            share: measure_classifier(draw_task(rows, 0.2, draw, TEST_SHARE, share), "radius")
            for share in (0.25, 0.5, 0.75, 1.0)
        }
        half = accuracy.pop(0.5)["accuracy"]
        for share, figures in accuracy.items():
            append(found, f"accuracy minus half/share={share:g}", figures["accuracy"] - half)
    return found


def laplace_privacy(job: Measurement) -> Quantities:
    """Measure average privacy with and without components and filtering; figure 8."""
    found = Quantities()
    for draw in range(job.draws):
        rows = load(job.table, draw, full=job.is_full).make_rows()
        for b in NOISE_LEVELS:
            made = release_laplace(rows, b, draw)
            plain, filtered = measure_laplace_privacy(made)
            noisy = release(rows, "additive_noise", {"b": b}, draw)
            d = noisy.X.shape[1]
            before, after = measure_privacy(noisy.X, noisy.Y), filter_privacy(noisy.X, noisy.Y, d)
            append(found, f"privacy unfiltered/b={b:g}", plain)
            append(found, f"privacy filtered/b={b:g}", filtered)
            append(found, f"privacy without components, filtered/b={b:g}", after)
            append(found, f"drop with components/b={b:g}", plain - filtered)
            append(found, f"drop without components/b={b:g}", before - after)
            difference = (before - after) - (plain - filtered)
            append(found, f"drop without minus with/b={b:g}", difference)
            append(found, f"drop from no filtering/b={b:g}", plain - after)
            append(found, f"drop from no filtering minus with/b={b:g}", filtered - after)
        guess = np.broadcast_to(made.X.mean(axis=0), made.X.shape)
        append(found, "privacy of guessing the mean", measure_privacy(made.X, guess))
    return found


def measure_laplace_privacy(made: ReleasedTable) -> tuple[float, float]:
    """Return the privacy after the inverse transform, and after filtering in addition."""
    X_hat = invert(made.public, made.Y)
    plain = measure_privacy(made.X, X_hat)
    return plain, min(plain, filter_privacy(made.X, X_hat, made.Y.shape[1]))


def list_rivals(d: int) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Return the compared methods with their settings, from little to much noise."""
    counts = sorted({max(1, d // 4), max(1, d // 2), d - 1}, reverse=True)
    return {
        "projection": [
            ("random_projection", {"components": k, "normalisation": "unit_columns"})
            for k in counts
        ],
        "uniform": [
            ("additive_noise", {"law": "uniform", "b": sd * math.sqrt(3.0)}) for sd in DEVIATIONS
        ],
        "normal": [("additive_noise", {"law": "normal", "b": sd}) for sd in DEVIATIONS],
    }


def method_points(job: Measurement) -> Quantities:
    """Measure average privacy and accuracy of the method and its rivals; figure 5."""
    table, found = load(job.table), Quantities()
    for draw in range(job.draws):
        train, test = split_records(table.n, TEST_SHARE, draw)
        rows = table.make_rows(train)
        scale = np.ptp(table.X, axis=0)
        queries, true = (table.X[test] - table.X.min(axis=0)) / scale, table.label[test]
        whole = table.make_rows()
        points = {"radius": [measure_radius_point(whole, rows, b, draw) for b in NOISE_LEVELS]}
        for name, settings in list_rivals(table.X.shape[1]).items():
            points[name] = []
            for method, parameters in settings:
                made = release(rows, method, parameters, draw)
                points[name].append(measure_rival_point(made, queries, true))
        record_points(found, points)
    return found


Point = tuple[float, float]  # average privacy, accuracy


def measure_radius_point(whole: ArrayRows, rows: ArrayRows, b: float, draw: int) -> Point:
    """Return the point of the method; its queries are another tenth of the whole table."""
    task = draw_task(whole, b, draw, TEST_SHARE)
    privacy = measure_laplace_privacy(release_laplace(rows, b, draw))[1]
    return privacy, measure_classifier(task, "radius")["accuracy"]


def measure_rival_point(made: ReleasedTable, queries: Floats, true: Any) -> Point:
    """Return the point of a rival, with the best k, after the attack that P0 applies to it."""
    if made.secret_map is None:
        privacy = filter_privacy(made.X, made.Y, made.X.shape[1])
        privacy = min(privacy, measure_privacy(made.X, made.Y))
    else:
        centre, loadings = made.secret_map
        privacy = measure_privacy(made.X, centre + made.Y @ np.linalg.pinv(loadings))
        queries = made.project_queries(queries)
    model = MINERS["knn"](k="cv").fit(made.Y, made.label)
    return privacy, float(np.mean(model.predict(queries) == true))


def record_points(found: Quantities, points: dict[str, list[Point]]) -> None:
    """Append the points, their distances from the line of the method, and steps between them."""
    privacy, accuracy = np.array(points["radius"]).T
    slope, level = np.polyfit(privacy, accuracy, 1)
    for name, each in points.items():
        for place, (p, a) in enumerate(each, start=1):
            append(found, f"privacy of {name}/setting={place}", p)
            append(found, f"accuracy of {name}/setting={place}", a)
            if name != "radius":
                append(found, f"below the line/{name}/setting={place}", level + slope * p - a)
                below = float(np.mean(privacy)) - p
                append(found, f"privacy below the radius/{name}/setting={place}", below)
        for place, (one, more) in enumerate(pairwise(each), start=1):
            append(found, f"privacy step/{name}/step={place}", more[0] - one[0])
            append(found, f"accuracy step/{name}/step={place}", one[1] - more[1])
