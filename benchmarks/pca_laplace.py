"""``pca_laplace`` against scikit-learn's PCA with numpy's Laplace noise, which protects nobody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.harness import Comparison, Side
from ppdm_core.noise import Noise
from ppdm_core.rows import ArrayRows
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from ppdm_core.types import Floats, Numeric, Schema

B = 0.3


@contextmanager
def compared(small: bool) -> Iterator[list[Comparison]]:
    n, d = (500, 6) if small else (100_000, 100)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / d
    X = np.clip(X, -1.0, 1.0)
    yield [
        Comparison(
            "pca_laplace",
            Side(f"fit and sanitize {n:,} x {d} to {d // 2} components", lambda: keyed(X)),
            Side("scikit-learn PCA(fit_transform) and numpy Laplace", lambda: plain(X)),
        )
    ]


def keyed(X: Floats) -> None:
    schema = Schema(tuple(Numeric(f"x{i}", -1.0, 1.0) for i in range(X.shape[1])))
    rows = ArrayRows(schema, X)
    method = PcaLaplace(components=X.shape[1] // 2, b=B, basis="private")
    method.sanitize(rows, Noise(bytes(32)), method.fit(rows))


def plain(X: Floats) -> None:
    from sklearn.decomposition import PCA

    scores = PCA(n_components=X.shape[1] // 2).fit_transform(X)
    scores + np.random.default_rng(1).laplace(scale=2 * B, size=scores.shape)
