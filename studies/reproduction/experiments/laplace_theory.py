"""P0: amplification, breaches, and the distortion of distances."""

from __future__ import annotations

import math

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.linear_map import project
from ppdm_core.numerics.noise_distributions import LAPLACE, StudentT
from studies.reproduction.measurement import Measurement
from studies.reproduction.releases import Quantities, append, release, release_laplace
from studies.reproduction.tables import load

NOISE_LEVELS = (0.1, 0.2, 0.3)
MAX_PAIRS = 50_000


def compute_posterior(gamma: float, prior: float) -> float:
    """Return the largest posterior of a property, equation 2."""
    return gamma * prior / (1.0 + (gamma - 1.0) * prior)


def laplace_bounds(job: Measurement) -> Quantities:
    """Read amplification off the guarantee of releases."""
    rows, found = load(job.table).make_rows(), Quantities()
    for b in (0.1, 0.2, 0.25, 0.3, 0.5):
        made = release_laplace(rows, b, 0)
        bound = made.sanitizer.guarantee(made.schema, made.fitted)
        gamma = math.exp(bound.ln_component)
        append(found, f"gamma/b={b:g}", gamma)
        append(found, f"ln gamma times b/b={b:g}", b * bound.ln_component)
        append(found, f"posterior of 0.001/b={b:g}", compute_posterior(gamma, 0.001))
    append(found, "ln gamma of record over component", bound.ln_record / bound.ln_component)
    return found


def breach_examples(job: Measurement) -> Quantities:
    """Compute the examples of sections 3 and 4."""
    found = Quantities()
    gamma = math.exp(float(LAPLACE.ln_gamma(np.array(1 / 0.5))))
    append(found, "posterior, gamma 20, prior 0.001", compute_posterior(20.0, 0.001))
    append(found, "gamma, b 0.5", gamma)
    append(found, "posterior, b 0.5, prior 0.01", gamma / (99.0 + gamma))
    odds = (2 * 1000 - 1) / 2 - math.log(99.0)
    append(found, "normal, posterior at 1000", 1.0 / (1.0 + math.exp(-odds)))
    append(found, "pole, growth of ln ratio per decade", measure_pole_growth())
    for nu in (1.0, 3.0, 10.0):
        error = measure_student_error(nu)
        append(found, f"student t, largest ln ratio minus formula/nu={nu:g}", error)
    for draw in range(job.draws):
        append(found, "uniform, posterior above 1.99", draw_uniform_breach(draw))
        append(found, "projection, posterior of not zero", draw_projection_breach(draw))
    return found


def measure_pole_growth() -> float:
    """Return how the ratio f(t)/f(1) of |t|^-1/2 exp(-|t|) grows as t comes nearer to 0."""
    decades = np.arange(3.0, 13.0)
    t = 10.0**-decades
    ln_ratio = -0.5 * np.log(t) - t + 1.0
    return float(np.polyfit(decades, ln_ratio, 1)[0])


def measure_student_error(nu: float, distance: float = 4.0) -> float:
    """Return the largest log ratio of two densities on a fine grid, less the formula."""
    y = np.linspace(-50.0, 50.0, 2_000_001)

    def log_density(x: Floats) -> Floats:
        return np.asarray(-(nu + 1) / 2 * np.log1p(x**2 / nu))

    largest = float(np.max(log_density(y) - log_density(y + distance)))
    return largest - float(StudentT(nu).ln_gamma(np.array(distance)))


def draw_uniform_breach(draw: int, n: int = 100_000) -> float:
    """Return the share of records of at least 0.99 among rows of at least 1.99, example 4.1."""
    x = np.random.default_rng([draw, 21]).uniform(0.97, 1.0, (n, 1))
    rows = ArrayRows(Schema((Numeric("x", 0.0, 1.0),)), x, np.zeros(n, dtype=np.int32))
    made = release(rows, "additive_noise", {"law": "uniform", "b": 0.5, "scale": "none"}, draw)
    is_high = made.Y[:, 0] + 0.5 >= 1.99  # the method's noise is from -0.5 to 0.5
    return float(np.mean(x[is_high] >= 0.99))


def draw_projection_breach(draw: int) -> float:
    """Return the share of records that are not zero among projected rows that are not zero."""
    rng = np.random.default_rng([draw, 22])
    X = np.where(rng.random((1_000, 1)) < 0.02, rng.random((1_000, 10)), 0.0)
    numeric = tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(10))
    rows = ArrayRows(Schema(numeric), X, np.zeros(len(X), dtype=np.int32))
    made = release(rows, "random_projection", {"components": 5, "scale": "none"}, draw)
    return float(np.mean(made.X[made.Y.any(axis=1)].any(axis=1)))


def measured_noise(job: Measurement) -> Quantities:
    """Estimate amplification from the noise that releases contain."""
    rows, found = load(job.table).make_rows(), Quantities()
    for draw in range(job.draws):
        for b in NOISE_LEVELS:
            made = release_laplace(rows, b, draw)
            T = project(made.public, made.X)
            scale = float(np.mean(np.abs(made.Y - T) / np.ptp(T, axis=0)))
            append(found, f"measured gamma/b={b:g}", math.exp(1.0 / scale))
            append(found, f"measured scale over b/b={b:g}", scale / b)
    return found


def distance_distortion(job: Measurement) -> Quantities:
    """Compare the distortion of squared distances between random pairs with equations 12, 13."""
    rows, found = load(job.table).make_rows(), Quantities()
    for draw in range(job.draws):
        rng = np.random.default_rng([draw, 23])
        i = rng.integers(0, rows.n, MAX_PAIRS)
        j = (i + rng.integers(1, rows.n, MAX_PAIRS)) % rows.n
        for b in NOISE_LEVELS:
            made = release_laplace(rows, b, draw)
            assert made.public.scales is not None
            scales, s = made.public.scales, made.Y.shape[1]
            variances = np.linalg.eigvalsh(np.cov(made.X, rowvar=False))[::-1]
            kept, dropped = variances[:s], variances[s:]
            mean = 2 * np.sum(scales**2) - 2 * np.sum(dropped)
            variance = (
                16 * np.sum(scales**2 * kept) + 20 * np.sum(scales**4) + 8 * np.sum(dropped**2)
            )
            T = project(made.public, made.X)
            before = np.sum((made.X[i] - made.X[j]) ** 2, axis=1)
            change = np.sum((made.Y[i] - T[j]) ** 2, axis=1) - before
            limit = mean + 2 * math.sqrt(variance)
            append(found, f"mean minus formula/b={b:g}", (change.mean() - mean) / variance**0.5)
            append(found, f"variance over formula/b={b:g}", change.var() / variance)
            append(found, f"share within two deviations/b={b:g}", np.mean(change <= limit))
    return found
