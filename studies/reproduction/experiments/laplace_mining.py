"""P0: accuracy and average privacy of components with Laplace noise, and of its rivals."""

from __future__ import annotations

import math
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
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
from studies.reproduction.tables import build_cluster_maker, load

NOISE_LEVELS = (0.1, 0.2, 0.3)
TEST_SHARE = 0.1
DEVIATIONS = (0.1, 0.25, 0.5)  # of the compared additive noise
SIZES, WIDTHS = (20_000, 60_000, 100_000), (20, 60, 100)
TIMED_QUERIES = 20


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
        for place, (one, more) in enumerate(pairwise(each), start=1):
            append(found, f"privacy step/{name}/step={place}", more[0] - one[0])
            append(found, f"accuracy step/{name}/step={place}", one[1] - more[1])


def laplace_times(job: Measurement) -> Quantities:
    """Measure processor time over the numbers of records and attributes; figures 10 and 11."""
    found = Quantities()
    for draw in range(job.draws):
        by_records = [measure_times(n, WIDTHS[-1], draw) for n in SIZES]
        by_width = [measure_times(SIZES[-1], m, draw) for m in WIDTHS[:-1]] + by_records[-1:]
        for step, title in (("sanitize", "sanitizing"), ("radius", "mining")):
            for axis, sizes, times in (
                ("records", SIZES, by_records),
                ("attributes", WIDTHS, by_width),
            ):
                seconds = [each[step] for each in times]
                exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
                append(found, f"exponent of {title}, {axis}", float(exponent))
                for size, value in zip(sizes, seconds, strict=True):
                    append(found, f"seconds of {title}/{axis}={size}", value)
        last = by_records[-1]
        append(found, "seconds for one query", last["radius"])
        append(found, "time of radius over k 5", last["radius"] / last["five"])
        moved = last["load and save"]
        append(found, "time of sanitizing over loading and saving", last["sanitize"] / moved)
    return found


def measure_times(n: int, attributes: int, draw: int) -> dict[str, float]:
    """Return seconds of processor time for the steps, with b = 0.3; mining for one query."""
    rng = np.random.default_rng([draw, 24])
    table = build_cluster_maker(n, attributes, 2.0)(rng, True)
    rows = table.make_rows()
    start = time.process_time()
    made = release_laplace(rows, 0.3, draw)
    times = {"sanitize": time.process_time() - start}
    times["load and save"] = time_files(table.X, made.Y) if n == SIZES[-1] else math.nan
    queries = rng.standard_normal((TIMED_QUERIES, made.Y.shape[1]))
    for name, model in (
        ("radius", MINERS["radius_knn"].from_public(made.public)),
        ("five", MINERS["knn"](k=5)),
    ):
        model.fit(made.Y, made.label)
        start = time.process_time()
        model.predict(queries)
        times[name] = (time.process_time() - start) / TIMED_QUERIES
    return times


def time_files(X: Floats, Y: Floats) -> float:
    """Return the processor time to load the original from a CSV file and to save the release."""
    import pyarrow as pa
    from pyarrow import csv

    with TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        names = [f"x{j}" for j in range(X.shape[1])]
        csv.write_csv(pa.table(list(X.T), names=names), path)
        start = time.process_time()
        csv.read_csv(path)
        csv.write_csv(pa.table(list(Y.T), names=names[: Y.shape[1]]), path)
        return time.process_time() - start
