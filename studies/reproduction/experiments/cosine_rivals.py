"""P3: mining on chosen coefficients, compared with noise, projections and random coefficients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdm_core.metrics._clusters import run_kmeans
from ppdm_core.metrics.cluster_f_measure import f_measure
from ppdm_core.model.arrays import Floats, Ints
from studies.reproduction.experiments.cosines import (
    CENTRAL,
    MAX_PRIVACY_RECORDS,
    TEST_SHARE,
    choose_kept,
    guess_privacy,
    reconstruct,
    transform,
)
from studies.reproduction.measurement import Measurement
from studies.reproduction.releases import (
    Quantities,
    append,
    measure_accuracy,
    measure_privacy,
    release,
    split_records,
)
from studies.reproduction.tables import Table, load

NORMAL_WIDTH, UNIFORM_WIDTH = 3.92, 1.9  # of the central 95 %, in deviations and half widths
HALF, FIFTH = 0.5, 0.2  # of average privacy, for noise
MAX_CLUSTERED = 3_000  # training records


@dataclass(frozen=True, eq=False)
class MiningTask:
    """Classes and records on which a release is compared with others."""

    table: Table
    train: Ints
    test: Ints
    clustered: Ints

    @classmethod
    def draw(cls, table: Table, draw: int) -> MiningTask:
        """Return a random split."""
        train, test = split_records(table.n, TEST_SHARE, draw)
        some = np.random.default_rng([draw, 56]).permutation(train)[:MAX_CLUSTERED]
        return cls(table, train, test, some)

    def measure(self, Z: Floats) -> tuple[float, float]:
        """Return the accuracy of five neighbours, and the F measure of K-means."""
        label = self.table.label
        accuracy = measure_accuracy(Z, label, self.train, self.test)
        cluster = run_kmeans(Z[self.clustered], int(label.max()) + 1)
        return accuracy, f_measure(label[self.clustered], cluster)


def cosine_rivals(job: Measurement) -> Quantities:
    """Compare with noise of the same privacy, projections and random coefficients; figure 6."""
    found = Quantities()
    for draw in range(job.draws):
        compare_rivals(found, load(job.table, draw), draw)
    return found


def compare_rivals(found: Quantities, table: Table, draw: int) -> None:
    """Append the figures of one draw."""
    X, C = table.X, transform(table.X)
    task, rng = MiningTask.draw(table, draw), np.random.default_rng([draw, 52])
    kept = choose_kept(table.make_rows(), *CENTRAL)
    some = rng.permutation(table.n)[:MAX_PRIVACY_RECORDS]
    worst = measure_privacy(X, reconstruct(C, kept))
    average = guess_privacy(X[some], C[some][:, kept], rng)
    original, ours = task.measure(X), task.measure(C[:, kept])
    append(found, "change of F measure", ours[1] - original[1])

    def compare(other: tuple[float, float], gain: str) -> None:
        append(found, f"gain {gain}", ours[0] - other[0])
        append(found, f"F gain {gain}", ours[1] - other[1])

    def place(name: str, privacy: float, figures: tuple[float, float]) -> None:
        append(found, f"privacy of {name}", privacy)
        append(found, f"accuracy of {name}", figures[0])
        append(found, f"F measure of {name}", figures[1])

    place("original", 0.0, original)
    place("ours, average case", average, ours)
    place("ours, worst case", worst, ours)
    levels = (("average", average), ("worst-case", worst), ("half", HALF), ("fifth", FIFTH))
    for law, level, privacy, Y in release_noise(table, levels, draw):
        figures = task.measure(Y)
        place(f"{law} noise, {level}", privacy, figures)
        if level in ("average", "worst-case"):
            compare(figures, f"at {level} privacy over {law}")
        if level == "half":
            change = figures[0] - original[0]
            append(found, f"accuracy change at half privacy {law}", change)
    m = X.shape[1]
    for count, name in ((len(kept), "as many columns"), (m - 1, "all but one")):
        Z = release_table(table, "random_projection", {"components": count}, draw)
        figures = task.measure(Z)
        compare(figures, f"over projection, {name}")
        privacy = measure_privacy(X, np.pad(Z, ((0, 0), (0, m - Z.shape[1]))))
        place(f"projection, {name}", privacy, figures)
        if name == "as many columns":
            append(found, "worst-case privacy minus projection", worst - privacy)
    chosen = rng.permutation(m)[: len(kept)]
    figures = task.measure(C[:, chosen])
    compare(figures, "over random coefficients")
    privacy = guess_privacy(X[some], C[some][:, chosen], rng)
    place("random coefficients, average case", privacy, figures)
    privacy = measure_privacy(X, reconstruct(C, chosen))
    place("random coefficients, worst case", privacy, figures)


def release_noise(
    table: Table, levels: tuple[tuple[str, float], ...], draw: int
) -> Iterator[tuple[str, str, float, Floats]]:
    """Yield law, level, privacy and rows of releases with noise of given average privacy."""
    for law, width in (("normal", NORMAL_WIDTH), ("uniform", UNIFORM_WIDTH)):
        for level, privacy in levels:
            given = {"law": law, "b": privacy / width}
            yield law, level, privacy, release_table(table, "additive_noise", given, draw)


def release_table(table: Table, method: str, parameters: dict[str, Any], draw: int) -> Floats:
    """Return the rows of a release, without scaling."""
    return release(table.make_rows(), method, {**parameters, "scale": "none"}, draw).Y
