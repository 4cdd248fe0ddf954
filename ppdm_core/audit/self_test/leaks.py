"""Releases that leak by construction, one function each, and noise in their place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ppdm_core.model.arrays import Codes, Floats, Ints
from ppdm_core.model.attacker import SiteMoments
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.numerics.random_orthogonal import random_orthogonal
from ppdm_core.sanitizers.additive_noise import AdditiveNoise
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy
from ppdm_core.sanitizers.kde_resample import KdeResample, normal_reference
from ppdm_core.sanitizers.random_projection import RandomProjection, compute_ratio_moments
from ppdm_core.sanitizers.random_rotation import RandomRotation

Rng = np.random.Generator
HALVED_RECORDS = 180  # of which half are in the release


@dataclass(frozen=True, eq=False)
class PlantedLeak:
    """A table, a leaking release of it, and what the attacker holds in addition."""

    X: Floats  # (n, d)
    Y: Floats  # (m, s)
    public: PublicParameters
    label: Codes
    schema: Schema
    source: Ints | None = None  # (m,) record behind each row; None: row i of record i
    members: Ints | None = None  # None: every record is in the release
    sample: Floats | None = None
    earlier: tuple[Floats, ...] = ()
    since: Ints | None = None  # (m,) first release that had the row; None: one release had all
    known: int = 0
    partners: Floats | None = None  # (f, s) rows of other sites in the same pool
    moments: SiteMoments | None = None  # of further records of this site, which the others know
    related: Floats | None = None  # (n, q) columns of every record that another party holds


def unit_box(d: int) -> Schema:
    """Return a schema of ``d`` columns in [0, 1] and a label of two classes."""
    numeric = tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(d))
    return Schema(numeric, label=Categorical("label", ("a", "b")))


def make_leak(
    X: Floats, Y: Floats, public: PublicParameters, label: Codes | None = None, **more: Any
) -> PlantedLeak:
    """Return a planted leak; without a label all records have the same one."""
    label = np.zeros(len(X), dtype=np.int32) if label is None else label
    return PlantedLeak(X, Y, public, label, unit_box(X.shape[1]), **more)


def make_persons(n: int, rng: Rng, d: int) -> tuple[Floats, Codes]:
    """Return distinct records of two classes, with slightly correlated columns."""
    label = rng.integers(0, 2, n).astype(np.int32)
    X = 0.25 * label[:, None] + 0.6 * rng.random((n, d)) + 0.15 * rng.random((n, 1))
    return X, label


def describe_noisy_columns(d: int, b: float) -> PublicParameters:
    """Return the public parameters of additive noise of scale ``b``."""
    return PublicParameters(
        method=AdditiveNoise.name,
        space="original",
        columns=unit_box(d).names,
        centre=np.full(d, 0.5),
        loadings=np.eye(d),
        law="laplace",
        scales=np.full(d, b),
    )


def describe_secret_columns(
    s: int, method: str = RandomRotation.name, **more: Any
) -> PublicParameters:
    """Return the public parameters of a release whose map is secret."""
    return PublicParameters(method, "rotated", tuple(f"rotated_{j + 1}" for j in range(s)), **more)


def leak_identity(rng: Rng, n: int = 60, d: int = 4, known: int = 7) -> PlantedLeak:
    """Release the records as they are, although noise is announced."""
    X, label = make_persons(n, rng, d)
    return make_leak(X, X.copy(), describe_noisy_columns(d, 0.02), label, known=known)


def leak_slight_noise(rng: Rng, n: int = 60) -> PlantedLeak:
    """Add noise of one per cent of each column's range."""
    X, label = make_persons(n, rng, 4)
    return make_leak(
        X, X + rng.laplace(0.0, 0.01, X.shape), describe_noisy_columns(4, 0.01), label, known=7
    )


def leak_rotation(rng: Rng, d: int = 4, known: int = 7) -> PlantedLeak:
    """Release the records rotated; some are known with their rows."""
    X, label = make_persons(60, rng, d)
    public = describe_secret_columns(d, preserves_distances=True)
    return make_leak(X, X @ random_orthogonal(d, rng), public, label, known=known)


CENTRES = np.array(
    [[0.9, 0.2, 0.8, 0.5], [0.2, 0.9, 0.6, 0.3], [0.5, 0.3, 0.1, 0.9], [0.7, 0.8, 0.3, 0.1]]
)
SHARES = (0.45, 0.3, 0.15, 0.1)


def draw_groups(n: int, rng: Rng) -> Floats:
    """Draw unequal groups: skewed, with distinct eigenvalues."""
    near = CENTRES[rng.choice(len(CENTRES), n, p=SHARES)]
    return np.clip(near + 0.04 * rng.standard_normal((n, 4)), 0.0, 1.0)


def draw_skewed_columns(n: int, rng: Rng) -> Floats:
    """Draw independent columns, each with another distribution that is far from normal."""
    low = rng.random(n) ** 4
    ends = np.where(rng.random(n) < 0.7, 0.3 * rng.random(n), 1.0 - 0.1 * rng.random(n))
    high = 1.0 - 0.6 * rng.random(n) ** 2
    middle = np.where(rng.random(n) < 0.2, rng.random(n), 0.4 + 0.1 * rng.random(n))
    return np.column_stack([low, ends, high, middle])


def leak_rotation_with_sample(
    population: Callable[[int, Rng], Floats], n: int, k: int, rng: Rng
) -> PlantedLeak:
    """Rotate the records; the attacker has a sample of the same population."""
    X = population(n, rng)
    public = describe_secret_columns(X.shape[1], preserves_distances=True)
    return make_leak(X, X @ random_orthogonal(X.shape[1], rng), public, sample=population(k, rng))


def leak_verbatim_rows(rng: Rng, n: int = 500) -> PlantedLeak:
    """Add noise that hides every record, but release max(5, 1 %) of the rows as they are."""
    X, label = make_persons(n, rng, 8)
    Y = X + rng.laplace(0.0, 2.0, X.shape)
    few = rng.choice(n, max(5, n // 100), replace=False)
    Y[few] = X[few]
    return make_leak(X, Y, describe_noisy_columns(8, 2.0), label)


def leak_shuffled_cosines(rng: Rng) -> PlantedLeak:
    """Release all cosine coefficients but one in a secret order; one record is known."""
    from scipy.fft import dct

    def draw_records(n: int) -> Floats:
        """Draw records whose last coefficient is nearly zero, so that it need not be known."""
        X = np.clip(0.6 * rng.random((n, 6)) + 0.4 * rng.random((n, 1)), 0.0, 1.0)
        C = dct(X, type=2, norm="ortho", axis=1)
        C[:, -1] = 0.02 * rng.standard_normal(n)
        return np.asarray(np.clip(dct(C, type=3, norm="ortho", axis=1), 0.0, 1.0))

    X = draw_records(100)
    Y = dct(X, type=2, norm="ortho", axis=1)[:, rng.permutation(5)]
    public = describe_secret_columns(5, DctFuzzy.name, facts={"transform": "orthonormal DCT-II"})
    return make_leak(X, Y, public, known=1, sample=draw_records(60))


def leak_projection(rng: Rng) -> PlantedLeak:
    """Project records of one shape and many sizes: all shrink by a factor that known ones show."""
    n, d, kept = 100, 8, 6
    size = np.exp(rng.uniform(-20.0, 0.0, (n, 1)))  # no constant is near many of them
    X = (0.9 * rng.uniform(0.3, 1.0, d) + 0.1 * rng.random((n, d))) * size
    R = rng.standard_normal((d, kept))
    factor = float(np.sqrt(d / kept))
    R *= factor / np.linalg.norm(R, axis=0)
    facts: dict[str, float | str] = {
        "components": float(kept),
        "normalisation": "unbiased",
        "squared_distance_ratio_mean": compute_ratio_moments(d, kept, factor)[0],
    }
    return make_leak(
        X, X @ R, describe_secret_columns(kept, RandomProjection.name, facts=facts), known=20
    )


def leak_kernels(rng: Rng, n: int = 80, rows: int = 80, members: Ints | None = None) -> PlantedLeak:
    """Draw rows so near to records of eight columns that each has one possible source."""
    X, label = make_persons(n, rng, 8)
    inside = np.arange(n) if members is None else members
    source = rng.choice(inside, rows)
    Y = X[source].copy()
    for code in np.unique(label).tolist():
        same = X[inside][label[inside] == code]
        h = same.std(axis=0, ddof=1) * normal_reference(np.array(float(len(same))), 8)
        here = label[source] == code
        Y[here] += h * (2.0 * rng.beta(2.0, 2.0, (int(here.sum()), 8)) - 1.0)
    public = PublicParameters(
        method=KdeResample.name,
        space="original",
        columns=unit_box(8).names,
        centre=np.zeros(8),
        loadings=np.eye(8),
        facts={"kernel": "epanechnikov", "bandwidth": "paper"},
    )
    return make_leak(X, np.clip(Y, 0.0, 1.0), public, label, source=source, members=members)


def leak_twenty_releases(rng: Rng) -> PlantedLeak:
    """Release the table twenty times, each time with fresh noise that hides the records."""
    X, label = make_persons(60, rng, 8)
    Y = X + rng.laplace(0.0, 0.1, (20, *X.shape))
    return make_leak(X, Y[0], describe_noisy_columns(8, 0.1), label, earlier=tuple(Y[1:]))


def leak_arrivals(rng: Rng) -> PlantedLeak:
    """Add noise that hides every record, but let two records arrive with each release."""
    X, label = make_persons(60, rng, 8)
    Y = X + rng.laplace(0.0, 0.3, X.shape)
    return make_leak(X, Y, describe_noisy_columns(8, 0.3), label, since=np.arange(60) // 2)


def leak_float_laplace(rng: Rng) -> PlantedLeak:
    """Add wide noise as numpy draws it, which hides values but not their last bits."""
    X = rng.random((60, 8))
    public = replace(
        describe_noisy_columns(8, 4.0), method="textbook_noise", centre=None, loadings=None
    )
    return make_leak(X, X + rng.laplace(0.0, 4.0, X.shape), public)


def leak_noise_with_a_hole(rng: Rng) -> PlantedLeak:
    """Add wide noise to every column, but none to one weighted sum of the columns."""
    X, label = make_persons(120, rng, 5)
    direction = rng.standard_normal(5)
    direction /= np.linalg.norm(direction)
    noise = rng.laplace(0.0, 2.0, X.shape)
    noise -= np.outer(noise @ direction, direction)
    return make_leak(X, X + noise, describe_noisy_columns(5, 2.0), label, known=40)


def leak_rearranged_values(rng: Rng) -> PlantedLeak:
    """Release the values of every record in a random order of their own."""
    X, label = make_persons(120, rng, 5)
    Y = rng.permuted(X, axis=1)
    return make_leak(X, Y, describe_noisy_columns(5, 0.5), label, known=40)


def leak_curved_map(rng: Rng) -> PlantedLeak:
    """Release a curved function of every record, without noise, under other names."""
    X, label = make_persons(120, rng, 4)
    Z = (X - X.mean(axis=0)) / X.std(axis=0) @ random_orthogonal(4, rng)
    return make_leak(X, Z**2 + 0.5 * Z, describe_secret_columns(4), label, known=60)


def leak_few_sizes_of_noise(rng: Rng) -> PlantedLeak:
    """Add wide noise that is a multiple of one fifth."""
    X, label = make_persons(120, rng, 4)
    Y = X + np.round(rng.laplace(0.0, 2.0, X.shape) * 5.0) / 5.0
    return make_leak(X, Y, describe_noisy_columns(4, 2.0), label)


def leak_recurrent_noise(rng: Rng) -> PlantedLeak:
    """Add wide noise in which each row follows from the row before it by one formula."""
    X, label = make_persons(120, rng, 4)
    noise = np.empty_like(X)
    state = rng.uniform(0.05, 0.95, 4)
    for row in noise:
        state = 3.99 * state * (1.0 - state)
        row[:] = 12.0 * (state - 0.5)
    return make_leak(X, X + noise, describe_noisy_columns(4, 3.0), label)


def leak_hidden_digits(rng: Rng) -> PlantedLeak:
    """Release noise alone, with the records in the digits after the third decimal."""
    X, label = make_persons(200, rng, 4)
    Y = np.round(rng.normal(0.5, 0.5, X.shape), 3) + np.roll(X, 1, axis=1) * 5e-4
    return make_leak(X, Y, describe_noisy_columns(4, 0.5), label)


def leak_guessable_seed(rng: Rng) -> PlantedLeak:
    """Add wide noise that a common generator draws from a small seed."""
    X, label = make_persons(120, rng, 4)
    noise = np.random.default_rng(int(rng.integers(0, 1000))).laplace(0.0, 2.0, X.shape)
    return make_leak(X, X + noise, describe_noisy_columns(4, 2.0), label)


def leak_pooled_rows(rng: Rng, n: int = 60) -> PlantedLeak:
    """Hide slightly noisy rows of one site among many rows of other sites."""
    X, label = make_persons(n, rng, 4)
    Y = X + rng.laplace(0.0, 0.03, X.shape)
    others, _ = make_persons(40 * n, rng, 4)
    return make_leak(X, Y, describe_noisy_columns(4, 0.03), label, partners=others)


def leak_pooled_moments(rng: Rng, n: int = 60) -> PlantedLeak:
    """Release one column with little noise; the moments of the site tell the others from it.

    At the other sites, the columns depend on the released one in the opposite way.
    """
    d, b = 4, 0.01

    def draw_records(count: int, slope: float) -> Floats:
        level = 0.1 + 0.9 * rng.random((count, 1))
        others = 0.5 + slope * (level - 0.5) + 0.01 * rng.standard_normal((count, d - 1))
        return np.hstack([level, np.clip(others, 0.0, 1.0)])

    X, further, theirs = (draw_records(*each) for each in ((n, 0.9), (2 * n, 0.9), (n, -0.9)))
    public = replace(
        describe_noisy_columns(d, b),
        space="components",
        columns=("component_1",),
        loadings=np.eye(d)[:, :1],
        scales=np.full(1, b),
    )
    Y, partners = (each[:, :1] - 0.5 + rng.laplace(0.0, b, (n, 1)) for each in (X, theirs))
    moments = SiteMoments(len(further), further.mean(axis=0), np.cov(further.T))
    return make_leak(X, Y, public, partners=partners, moments=moments)


def leak_part_of_a_sum(rng: Rng) -> PlantedLeak:
    """Release as many coefficients of one party as it has columns."""
    X, label = make_persons(100, rng, 4)
    return make_leak(X, *release_part(X, 4), label)


def leak_related_columns(rng: Rng) -> PlantedLeak:
    """Release half of the coefficients of one party; the other party's columns show the rest."""
    d, kept = 8, 4
    X, label = make_persons(HALVED_RECORDS, rng, d)
    Y, public = release_part(X, kept)
    assert public.loadings is not None
    dropped = np.linalg.svd(public.loadings)[0][:, kept:]  # directions that the part does not hold
    related = X @ dropped @ rng.standard_normal((d - kept, d))
    halved = remove_half(make_leak(X, Y, public, label, related=related))
    return replace(halved, known=40)


def release_part(X: Floats, kept: int) -> tuple[Floats, PublicParameters]:
    """Return the first coefficients of one party that holds half of all columns."""
    d = X.shape[1]
    names = [f"x{j}" for j in range(2 * d)]
    part = DctFuzzy(scale="minmax", order=names, others=names[d:]).make_part(names[:d])
    centre, loadings = part.find_map(range(kept))
    public = PublicParameters(
        method=DctFuzzy.name,
        space="components",
        columns=tuple(f"coefficient_{i + 1}" for i in range(kept)),
        centre=centre,
        loadings=loadings,
        facts=part.describe(),
    )
    return part.compute_coefficients(X)[:, :kept], public


LEAKS: dict[str, Callable[[Rng], PlantedLeak]] = {
    "identity": leak_identity,
    "slight noise": leak_slight_noise,
    "rotation": leak_rotation,
    "verbatim rows": leak_verbatim_rows,
    "shuffled cosines": leak_shuffled_cosines,
    "projection": leak_projection,
    "kernels": leak_kernels,
    "twenty releases": leak_twenty_releases,
    "arrivals": leak_arrivals,
    "float Laplace": leak_float_laplace,
    "noise with a hole": leak_noise_with_a_hole,
    "rearranged values": leak_rearranged_values,
    "curved map": leak_curved_map,
    "few sizes of noise": leak_few_sizes_of_noise,
    "recurrent noise": leak_recurrent_noise,
    "hidden digits": leak_hidden_digits,
    "guessable seed": leak_guessable_seed,
    "pooled rows": leak_pooled_rows,
    "pooled moments": leak_pooled_moments,
    "part of a sum": leak_part_of_a_sum,
    "related columns": leak_related_columns,
}
WITH_OUTSIDERS = "with outsiders"  # variant with half of the records outside the release
# The same leak in a table that suits an attack, by the attack's ``leak_variant``.
VARIANTS: dict[tuple[str, str], Callable[[Rng], PlantedLeak]] = {
    ("identity", "three columns"): lambda rng: leak_identity(rng, d=3, known=5),
    ("rotation", "three columns"): lambda rng: leak_rotation(rng, d=3, known=5),
    ("rotation", "groups and sample"): lambda rng: leak_rotation_with_sample(
        draw_groups, 100, 100, rng
    ),
    ("rotation", "skewed columns and sample"): lambda rng: leak_rotation_with_sample(
        draw_skewed_columns, 100, 100, rng
    ),
    ("kernels", "many rows"): lambda rng: leak_kernels(rng, 160, 800, np.arange(80)),
    ("related columns", WITH_OUTSIDERS): leak_related_columns,
    ("identity", WITH_OUTSIDERS): lambda rng: remove_half(leak_identity(rng, HALVED_RECORDS)),
    ("slight noise", WITH_OUTSIDERS): lambda rng: remove_half(
        leak_slight_noise(rng, HALVED_RECORDS)
    ),
}


def plant_leak(leak: str, variant: str, *, needs_outsiders: bool, rng: Rng) -> PlantedLeak:
    """Return the leak in its variant; some attacks need records that are not in the release."""
    make = VARIANTS.get((leak, variant))
    if make is None and needs_outsiders:
        make = VARIANTS[leak, WITH_OUTSIDERS]
    return (make or LEAKS[leak])(rng)


def remove_half(planted: PlantedLeak) -> PlantedLeak:
    """Return the same leak with every other record outside the release."""
    members = np.arange(0, len(planted.X), 2)
    return replace(planted, Y=planted.Y[members], source=members, members=members, known=0)


def replace_by_noise(planted: PlantedLeak, rng: Rng) -> PlantedLeak:
    """Return a release of the same kind made of noise alone, with the same means and spreads."""

    def draw_noise(Y: Floats) -> Floats:
        return np.asarray(Y.mean(axis=0) + Y.std(axis=0) * rng.standard_normal(Y.shape))

    earlier = tuple(map(draw_noise, planted.earlier))
    return replace(planted, Y=draw_noise(planted.Y), earlier=earlier, since=None)
