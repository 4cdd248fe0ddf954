"""P0: processor time of components with Laplace noise, and of mining; figures 10 and 11."""

from __future__ import annotations

import math
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ppdm_core.miners import MINERS
from ppdm_core.model.arrays import Floats
from studies.reproduction.measurement import Measurement
from studies.reproduction.releases import Quantities, append, release_laplace
from studies.reproduction.tables import build_cluster_maker

SIZES, WIDTHS = (20_000, 60_000, 100_000), (20, 60, 100)
TIMED_QUERIES = 400


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
        bare = last["components and noise"] / moved
        append(found, "time of components and noise over loading and saving", bare)
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
    times["components and noise"] = time_components(made.X, made.Y.shape[1], 0.3, rng)
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


def time_components(X: Floats, s: int, b: float, rng: np.random.Generator) -> float:
    """Return the processor time of s principal components and of their noise, without keys."""
    start = time.process_time()
    centred = X - X.mean(axis=0)
    loadings = np.linalg.eigh(centred.T @ centred / (len(X) - 1))[1][:, ::-1][:, :s]
    T = centred @ loadings
    Y = T + rng.laplace(0.0, b * np.ptp(T, axis=0), T.shape)
    assert Y.shape == T.shape
    return time.process_time() - start


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
