"""P0: amplification, breaches, and the distortion of distances."""

from __future__ import annotations

import math
from collections.abc import Callable

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
MAX_PAIRS, PAIRS_OF_RECORD = 50_000, 50
MAX_LN_RATIO = 1e6


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
    for name, ln_density in CONTINUOUS.items():
        growth = measure_ratio_growth(ln_density)
        append(found, f"continuous, growth of ln ratio per decade/density={name}", growth)
    for place, largest in enumerate(find_unbounded_ratios(), start=1):
        append(found, f"one condition less, ln ratio/condition={place}", largest)
    append(found, "salaries, posterior of the largest at 250,000", compute_salary_breach())
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


LnDensity = Callable[[Floats], Floats]
CONTINUOUS: dict[str, LnDensity] = {  # up to a constant; infinite support, no zero, bounded tails
    "laplace": lambda t: -np.abs(t),
    "cauchy": lambda t: -np.log1p(t**2),
    "logistic": lambda t: -np.abs(t) - 2.0 * np.log1p(np.exp(-np.abs(t))),
    "cusp": lambda t: -np.sqrt(np.abs(t)),
}


def measure_ratio_growth(ln_density: LnDensity) -> float:
    """Return how the largest ln f(t)/f(t + 1) grows with each decade that t comes near 0 or far."""
    reach = np.arange(3.0, 13.0)
    largest = []
    for decades in reach:
        t = 10.0 ** np.linspace(-decades, decades, 20_001)
        t = np.concatenate([-t, [0.0], t])
        ln_ratio = ln_density(t) - np.stack([ln_density(t - 1.0), ln_density(t + 1.0)])
        largest.append(float(np.abs(ln_ratio).max()))
    return float(np.polyfit(reach, largest, 1)[0])


def find_unbounded_ratios() -> tuple[float, float, float]:
    """Return the largest ln ratio if one condition of theorem 4 is violated, at most MAX_LN_RATIO.

    The first is uniform noise from 0 to 1, whose ratio is infinite where one density is 0; the
    second is t^2 exp(-|t|), with a zero at 0; the third is normal noise.
    """
    y = np.linspace(-0.5, 1.5, 2_001)
    is_inside = (y >= 0) & (y <= 1)
    uniform = math.inf if np.any(is_inside[250:] & ~is_inside[:-250]) else 0.0
    t = 10.0 ** -np.arange(1.0, 301.0)
    zero = float(np.max(-1.0 - (2.0 * np.log(t) - t)))  # ln f(1)/f(t)
    far = 10.0 ** np.arange(0.0, 7.0)
    normal = float(np.max((far**2 - (far - 1.0) ** 2) / 2))
    first, second, third = (min(each, MAX_LN_RATIO) for each in (uniform, zero, normal))
    return first, second, third


def compute_salary_breach() -> float:
    """Return the posterior of the only salary of 150,000 at a row of 250,000, example 1.1."""
    salaries = np.append(np.linspace(20_000.0, 149_999.0, 99), 150_000.0)
    likely = np.abs(250_000.0 - salaries) <= 100_000.0  # the noise is uniform
    return float(likely[-1] / likely.sum())


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
            assert made.public.scales is not None
            ranges = made.public.scales / b  # published ones, rounded up to two digits
            scale = float(np.mean(np.abs(made.Y - T) / ranges))
            append(found, f"measured gamma/b={b:g}", math.exp(1.0 / scale))
            append(found, f"measured scale over b/b={b:g}", scale / b)
    return found


def distance_distortion(job: Measurement) -> Quantities:
    """Compare the distortion of squared distances between random pairs with equations 12, 13."""
    rows, found = load(job.table).make_rows(), Quantities()
    for draw in range(job.draws):
        rng = np.random.default_rng([draw, 23])
        count = min(MAX_PAIRS, PAIRS_OF_RECORD * rows.n)
        i = rng.integers(0, rows.n, count)
        j = (i + rng.integers(1, rows.n, count)) % rows.n
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
