"""P2: errors of the density, and who is behind a released row, over sites and records."""

from __future__ import annotations

import numpy as np

from ppdm_core.attacks.source_record import SourceRecord
from ppdm_core.metrics.dapl_plug_in import DaplPlugIn
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.attacker import RecordSet
from ppdm_core.numerics.kernel_model import BandwidthRule
from studies.pooled_sites import measure_pool
from studies.reproduction.experiments.resampling import resample, split_table
from studies.reproduction.measurement import Measurement
from studies.reproduction.releases import Quantities, ReleasedTable, append
from studies.reproduction.tables import load

PAPER_RULE = BandwidthRule(is_corrected=False, floor=0.0)
CURVE_DRAWS = 20  # of curves over sites on which no claim rests
RECORDS = (100, 200, 400, 800, 1_600, 3_200)
EVALUATED_ROWS = 500


def density_loss(job: Measurement) -> Quantities:
    """Measure the error of the density, as two readings of DAPL, over the number of sites."""
    table, found, sites = load(job.table), Quantities(), job.options["sites"]
    label = table.label.astype(np.int32)
    for draw in range(job.draws):
        for count in sites:
            *_, plug_in, held_out = measure_pool(table.X, label, count, draw)
            append(found, f"plug-in DAPL/L={count}", plug_in)
            append(found, f"held-out DAPL/L={count}", held_out)
            if draw < CURVE_DRAWS:
                measure_class_densities(found, table.X, table.label, count, draw)
    for name in ("plug-in DAPL", "held-out DAPL"):
        first, last = found[f"{name}/L={sites[0]}"], found[f"{name}/L={sites[-1]}"]
        found[f"{name}, most sites minus one"] = [b - a for a, b in zip(first, last, strict=True)]
    return found


def measure_class_densities(
    found: Quantities, X: Floats, label: Ints, sites: int, draw: int
) -> None:
    """Append the plug-in DAPL of each class, mean over sites."""
    rng = np.random.default_rng([draw, sites, 46])
    parts = np.array_split(rng.permutation(len(X)), sites)
    widths, measure = np.ptp(X, axis=0), DaplPlugIn().measure_class
    for code in np.unique(label):
        each = [measure(X[part][label[part] == code], PAPER_RULE, widths, rng) for part in parts]
        append(found, f"plug-in DAPL of class {code + 1}/L={sites}", float(np.mean(each)))


def source_records(job: Measurement) -> Quantities:
    """Identify the record behind each row, at one site and at several; one site sets bounds."""
    table, found = load(job.table), Quantities()
    for draw in range(job.draws):
        X, train, _ = split_table(table, draw)
        for sites in job.options["sites"] if draw < CURVE_DRAWS else (1,):
            order = np.random.default_rng([draw, 42]).permutation(train)
            parts = [train] if sites == 1 else np.array_split(order, sites)
            figures = []
            for place, part in enumerate(parts):
                made = resample(X[part], table.label[part], 8_000 + draw + 1_000 * place)
                figures.append(identify_sources(made, draw))
            identified, posterior = np.average(figures, axis=0, weights=[len(p) for p in parts])
            append(found, f"identified over sites/L={sites}", identified)
            append(found, f"posterior over sites/L={sites}", posterior)
            if sites == 1:
                append(found, "source identified", identified)
                widths = made.sanitizer.compute_bandwidths(made.schema, made.fitted)
                reach = 2 * widths[made.row_label + 1] / np.ptp(made.X, axis=0)
                append(found, "width of the bound", float(np.mean(np.minimum(reach, 1.0))))
    return found


def identify_sources(made: ReleasedTable, draw: int) -> tuple[float, float]:
    """Return the share of rows whose record is found, and the mean posterior of the record."""
    no_codes = np.zeros((len(made.X), 0), dtype=np.int32)
    targets = RecordSet(made.X, no_codes, made.label.astype(np.int32))
    rng = np.random.default_rng([draw, 43])
    estimate = SourceRecord().attack(made.make_view(targets=targets), rng)
    guess, chance = estimate.candidates["known"], estimate.claims["known"]
    is_right = guess == made.source[:, None]
    return float(np.mean(is_right[:, 0])), float(np.mean(np.sum(chance * is_right, axis=1)))


def growing_tables(job: Measurement) -> Quantities:
    """Identify the record behind a row, and measure its information, as a normal table grows."""
    found = Quantities()
    for draw in range(job.draws):
        for d in (1, 2):
            columns = "1 column" if d == 1 else f"{d} columns"
            figures = []
            for n in RECORDS:
                figures.append(measure_growing_table(n, d, np.random.default_rng([draw, n, d])))
                append(found, f"source identified, {columns}/records={n}", figures[-1][0])
                append(found, f"mutual information, {columns}/records={n}", figures[-1][1])
            for place, name in enumerate(("source identified", "mutual information")):
                fall = figures[0][place] - figures[-1][place]
                append(found, f"{name}, 100 minus 3200 records/columns={d}", fall)
    return found


def measure_growing_table(n: int, d: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the share of rows whose record is found, and the bits that a row tells of the table.

    The likeliest record is that with the largest kernel at the row. The information is the mean of
    ln f(y | table) / f(y), where the density without the table is the normal law smoothed by the
    kernel.
    """
    X = rng.standard_normal((n, d))
    h = PAPER_RULE.compute_from_records(X.std(axis=0, ddof=1), n, np.ones(d))
    source = rng.integers(0, n, EVALUATED_ROWS)
    steps = np.median(rng.uniform(-1.0, 1.0, (3, EVALUATED_ROWS, d)), axis=0)  # of the kernel
    Y = X[source] + h * steps
    kernel = np.ones((EVALUATED_ROWS, n))
    ln_smooth = np.zeros(EVALUATED_ROWS)
    for j in range(d):
        gap = (Y[:, j, None] - X[:, j]) / h[j]
        kernel *= np.maximum(0.75 * (1.0 - gap**2) / h[j], 0.0)
        ln_smooth += np.log(smooth_normal(Y[:, j], float(h[j])))
    identified = float(np.mean(kernel.argmax(axis=1) == source))
    bits = (np.log(kernel.mean(axis=1)) - ln_smooth) / np.log(2.0)
    return identified, float(bits.mean())


def smooth_normal(y: Floats, h: float) -> Floats:
    """Return the density of a standard normal number plus h times an Epanechnikov one."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    normal = np.exp(-0.5 * (y[:, None] - h * nodes) ** 2) / np.sqrt(2.0 * np.pi)
    return np.asarray(normal @ (weights * 0.75 * (1.0 - nodes**2)))


def density_limits(job: Measurement) -> Quantities:
    """Measure the distance of the kernel density from a normal one for few and many records."""
    found, measure = Quantities(), DaplPlugIn().measure_class
    for draw in range(job.draws):
        rng = np.random.default_rng([draw, 44])
        for d in (1, 2, 4):
            few, many = (
                measure(rng.standard_normal((n, d)), PAPER_RULE, np.ones(d), rng)
                for n in (100, 1_600)
            )
            append(found, f"distance, 100 minus 1600 records/d={d}", few - many)
        wide = BandwidthRule(is_corrected=False, floor=100.0)
        distance = measure(rng.standard_normal((400, 2)), wide, np.ones(2), rng)
        append(found, "distance, bandwidth of 100 deviations", distance)
    return found
