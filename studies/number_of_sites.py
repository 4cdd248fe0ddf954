"""The loss of classifiers and the error of the density when 1 to 5 sites resample and pool.

    PPDM_DATA=FOLDER python -m studies.number_of_sites

Tables, sizes and classifiers are those of Tan, Ng (2007). ``phi`` is the error of a classifier that
is trained on the pool minus that of the same classifier on the original records. ``DAPL`` is the
total variation distance between the density that rows are drawn from and the true density of a
class, which the paper takes as known. Here it is measured in four ways:

    site      a normal density with mean and covariance of the class counts as the truth, and as
              many records are drawn from it; mean over the sites of the distance of each
    pool      the same, for the mixture of the densities of all sites, from which the pool is drawn
    held-out  a lower bound from records that the density was not made of; mean over the sites
    known     records of a normal density that is known, in place of a table (the last lines)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ppdm_core.metrics._dapl import MAX_CLASS_RECORDS, Density
from ppdm_core.metrics.dapl_held_out import DaplHeldOut
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.numerics.kernel_model import BandwidthRule
from studies.reproduction.experiments.resampling import (
    CLASSIFIERS,
    measure_errors,
    pool_sites,
    split_table,
)
from studies.reproduction.tables import Table, load

TABLES = {  # names in the paper
    "iris_two": "Iris",
    "svmguide1": "SVMGuide1",
    "pima": "Diabetes",
    "breast_cancer_libsvm": "Breast-Cancer",
    "ionosphere": "Ionosphere",
}
SITES = (1, 2, 3, 4, 5)
DRAWS, LARGE_DRAWS, LARGE_RECORDS = 20, 5, 3_000
POINTS = 1_000  # of each of the two densities that are compared
RULE = BandwidthRule(is_corrected=False, floor=0.0)  # the paper's
KNOWN = {"normal, 2 columns": (400, 2), "normal, 8 columns": (400, 8)}  # records, columns


@dataclass(frozen=True)
class Normal:
    """A normal density."""

    mean: Floats  # (d,)
    factor: Floats  # (d, d) Cholesky factor of the covariance

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        return self.mean + rng.standard_normal((count, len(self.mean))) @ self.factor.T

    def log(self, X: Floats) -> Floats:
        W = np.linalg.solve(self.factor, (X - self.mean).T)
        scale = np.log(np.diag(self.factor)).sum() + 0.5 * len(self.mean) * np.log(2 * np.pi)
        return np.asarray(-0.5 * (W**2).sum(axis=0) - scale)


class Mixture:
    """The density of the pool: that of each site, weighted by its records."""

    def __init__(self, parts: Sequence[Density]) -> None:
        self.parts = parts
        sizes = np.array([len(part.X) for part in parts], dtype=np.float64)
        self.shares = sizes / sizes.sum()

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        counts = rng.multinomial(count, self.shares)
        drawn = [part.draw(n, rng) for part, n in zip(self.parts, counts.tolist(), strict=True)]
        return np.concatenate(drawn)

    def log(self, Y: Floats) -> Floats:
        logs = [
            part.log(Y) + np.log(share) for part, share in zip(self.parts, self.shares, strict=True)
        ]
        return np.asarray(np.logaddexp.reduce(logs))


def fit_normal(X: Floats) -> Normal | None:
    """Return the normal density of records; None if a column is a function of others."""
    S = np.cov(X.T).reshape(X.shape[1], -1)
    spread = np.sqrt(np.diag(S))
    if len(X) <= X.shape[1] or not np.all(spread > 1e-9):
        return None
    if np.linalg.eigvalsh(S / np.outer(spread, spread))[0] < 1e-9:
        return None
    return Normal(X.mean(axis=0), np.linalg.cholesky(S))


def measure_distance(density: Density | Mixture, truth: Normal, rng: np.random.Generator) -> float:
    """Return the total variation distance, as the mean of |f - g| / (f + g) over both densities."""
    points = np.vstack([truth.draw(POINTS, rng), density.draw(POINTS, rng)])
    gap = density.log(points) - truth.log(points)
    return float(np.mean(np.abs(np.tanh(gap / 2.0))))


def measure_truth(
    truth: Normal | None, n: int, sites: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the distances of the sites (their mean) and of the pool, for n records of a truth."""
    if truth is None:
        return 1.0, 1.0  # a constant column has no density
    parts = np.array_split(truth.draw(n, rng), sites)
    if min(map(len, parts)) < 2:
        return 1.0, 1.0
    widths = np.ptp(np.concatenate(parts), axis=0)
    densities = [Density(part, RULE, widths) for part in parts]
    alone = [measure_distance(each, truth, rng) for each in densities]
    return float(np.mean(alone)), measure_distance(Mixture(densities), truth, rng)


def measure_held_out(X: Floats, sites: int, rng: np.random.Generator) -> float:
    """Return the mean over sites of the lower bound from held-out records."""
    parts = np.array_split(rng.permutation(len(X)), sites)
    widths = np.ptp(X, axis=0)
    measure = DaplHeldOut().measure_class
    return float(np.mean([measure(X[part], RULE, widths, rng) for part in parts]))


def measure_densities(X: Floats, label: Ints, sites: int, draw: int) -> Floats:
    """Return site, pool and held-out distance of each class, (classes, 3)."""
    rng = np.random.default_rng([draw, sites, 51])
    found = []
    for code in np.unique(label).tolist():
        records = X[label == code]
        if len(records) > MAX_CLASS_RECORDS:
            records = records[rng.choice(len(records), MAX_CLASS_RECORDS, replace=False)]
        both = measure_truth(fit_normal(records), len(records), sites, rng)
        found.append((*both, measure_held_out(records, sites, rng)))
    return np.array(found)


def compare_sites(table: Table, draws: int) -> Iterator[tuple[int, Floats, Floats]]:
    """Yield for each number of sites the losses (draws, classifiers) and distances of classes."""
    for sites in SITES:
        losses, distances = [], []
        for draw in range(draws):
            X, train, test = split_table(table, draw)
            label, task = table.label, (X[test], table.label[test])
            original = measure_errors(X[train], label[train], *task)
            pooled = measure_errors(*pool_sites(X[train], label[train], sites, draw), *task)
            losses.append([pooled[name] - original[name] for name in CLASSIFIERS])
            distances.append(measure_densities(X[train], label[train], sites, draw))
        yield sites, np.array(losses), np.mean(distances, axis=0)


def load_table(name: str) -> Table:
    """Return a table of the paper; the patient's number is no column of Breast-Cancer (E24)."""
    table = load(name)
    if name != "breast_cancer_libsvm":
        return table
    return Table(name, table.X[:, 1:], table.label, table.training)


def format_row(cells: Sequence[object]) -> str:
    """Return one line of a Markdown table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def format_mean(values: Floats) -> str:
    """Return the mean with its standard error."""
    return f"{values.mean():+.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def print_tables(write: Callable[[str], None]) -> None:
    """Write one line for each table of the paper and number of sites."""
    heads = ("table", "sites", "phi ANN", "phi 11-NN", "phi naive Bayes")
    ways = ("DAPL site", "pool", "held-out")
    write(format_row((*heads, *ways)))
    write(format_row(["---"] * (len(heads) + len(ways))))
    for name, title in TABLES.items():
        table = load_table(name)
        draws = LARGE_DRAWS if table.n > LARGE_RECORDS else DRAWS
        for sites, losses, distances in compare_sites(table, draws):
            classes = [", ".join(f"{each:.2f}" for each in way) for way in distances.T]
            write(format_row((title, sites, *map(format_mean, losses.T), *classes)))


def print_known(write: Callable[[str], None]) -> None:
    """Write the distances from a density that is known."""
    write(format_row(("known density", "sites", "DAPL site", "pool")))
    write(format_row(["---"] * 4))
    for name, (n, d) in KNOWN.items():
        truth = Normal(np.zeros(d), np.eye(d))
        for sites in SITES:
            rng = np.random.default_rng([sites, d, 52])
            found = np.mean([measure_truth(truth, n, sites, rng) for _ in range(DRAWS)], axis=0)
            write(format_row((name, sites, *(f"{each:.3f}" for each in found))))


def main() -> None:
    """Print both tables."""

    def write(line: str) -> None:
        print(line, flush=True)

    print_tables(write)
    print_known(write)


if __name__ == "__main__":
    sys.exit(main())
