"""``dct_fuzzy``: its selection against one second, its transform against scipy's DCT alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.harness import Comparison, Side
from ppdm_core.model.arrays import Floats
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers._fuzzy_selection import Programme, choose_pruning
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy

LIMIT_SECONDS = 1.0


@contextmanager
def build_comparisons(small: bool) -> Iterator[list[Comparison]]:
    """Compare the selection and the release."""
    m = 12 if small else 1000
    n, d = (500, 6) if small else (100_000, 100)
    programme = make_hard_programme(m)
    X = np.random.default_rng(1).random((n, d))  # unordered columns: most coefficients are released
    rows = ArrayRows(Schema(tuple(Numeric(f"x{i}", 0.0, 1.0) for i in range(d))), X)
    method = DctFuzzy()
    fitted = method.fit(rows)
    kept = len(fitted["kept"])
    yield [
        Comparison(
            "dct_fuzzy, choice",
            Side(
                f"the best of all choices among {m:,} coefficients",
                lambda: choose_pruning(programme),
            ),
            Side("one second by the clock", lambda: time.sleep(0 if small else LIMIT_SECONDS)),
            at_most=1,
        ),
        Comparison(
            "dct_fuzzy",
            Side(
                f"sanitize {n:,} x {d} to {kept} coefficients",
                lambda: method.sanitize(rows, Noise(bytes(32)), fitted),
            ),
            Side("scipy's DCT of the same table, nothing else", lambda: transform_only(X)),
            at_most=2,
        ),
    ]


def make_hard_programme(m: int) -> Programme:
    """Return a selection problem with evenly spread energy, so that many choices compete."""
    W = np.random.default_rng(1).dirichlet(np.ones(m), size=200)
    low, high = W.min(axis=0), W.max(axis=0)
    return Programme(low, high - low, b=0.1, p=0.2)


def transform_only(X: Floats) -> None:
    """Compute the cosine transform of a table."""
    from scipy.fft import dct

    dct(X, type=2, norm="ortho", axis=1)
