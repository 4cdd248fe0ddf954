"""``pca_laplace`` against scikit-learn's PCA with numpy's Laplace noise, which protects nobody.

Its memory has limits of its own, and that of ``kde_resample`` from parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.harness import Comparison, Figure, Side
from benchmarks.memory import peak
from ppdm_core.model.arrays import Floats
from ppdm_core.model.rows import ArrayRows, Block, Rows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers import Sanitizer
from ppdm_core.sanitizers.kde_resample import KdeResample
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from warehouse.parquet_parts import PartRows, write_parts

B = 0.3


@contextmanager
def compared(small: bool) -> Iterator[list[Comparison]]:
    n, d = (500, 6) if small else (100_000, 100)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / d
    X = np.clip(X, -1.0, 1.0)
    figures = toy_memory() if small else memory()
    yield [
        Comparison(
            "pca_laplace",
            Side(f"fit and sanitize {n:,} x {d} to {d // 2} components", lambda: keyed(X)),
            Side("scikit-learn PCA(fit_transform) and numpy Laplace", lambda: plain(X)),
            figures=tuple(figures),
        )
    ]


def keyed(X: Floats) -> None:
    rows = ArrayRows(schema(X.shape[1], -1.0), X)
    method = PcaLaplace(components=X.shape[1] // 2, b=B, basis="private")
    method.sanitize(rows, Noise(bytes(32)), method.fit(rows))


def plain(X: Floats) -> None:
    from sklearn.decomposition import PCA

    scores = PCA(n_components=X.shape[1] // 2).fit_transform(X)
    scores + np.random.default_rng(1).laplace(scale=2 * B, size=scores.shape)


def schema(d: int, low: float) -> Schema:
    return Schema(tuple(Numeric(f"x{i}", low, 1.0) for i in range(d)))


def toy_memory() -> list[Figure]:
    return [in_copies(1000, 5, pca("isotropic")), *from_parts(1000, 5, pca("isotropic"))]


def memory() -> list[Figure]:
    shapes = [pca("isotropic"), pca("per_component")]
    figures = [in_copies(1_000_000, 50, method) for method in shapes]
    figures += from_parts(1_000_000, 50, *shapes)
    for n in (100_000, 400_000, 1_000_000):
        figures += from_parts(n, 20, KdeResample())
    return figures


def in_copies(n: int, d: int, method: Sanitizer) -> Figure:
    """Input, release and all between, against numpy with the input alone."""
    copies = peak(release_array, n, d, method) / (n * d * 8)
    return Figure(f"Copies of the input in memory, {named(method)}, {n:,} x {d}", copies, 2.0)


def from_parts(n: int, d: int, *methods: Sanitizer) -> list[Figure]:
    with TemporaryDirectory() as folder:
        parts = Path(folder) / "input"
        write_numbers(parts, n, d)
        peaks = [peak(release_parts, parts, d, method) / 1e6 for method in methods]
    return [
        Figure(f"MB from Parquet parts, {named(method)}, {n:,} x {d}", most, 500.0)
        for method, most in zip(methods, peaks, strict=True)
    ]


def named(method: Sanitizer) -> str:
    return f"{method.name} {getattr(method, 'noise_shape', '')}".strip()


def pca(shape: str) -> PcaLaplace:
    return PcaLaplace(b=B, basis="private", noise_shape=shape)


def release_array(n: int, d: int, method: Sanitizer) -> None:
    X = np.random.default_rng(1).random((n, d))
    scaled_and_released(ArrayRows(schema(d, 0.0), X), method)


def release_parts(folder: Path, d: int, method: Sanitizer) -> None:
    scaled_and_released(PartRows(schema(d, 0.0), folder), method)


def scaled_and_released(rows: Rows, method: Sanitizer) -> None:
    scaling = fit_scaling(rows, method.scale)
    X = scaling.apply(rows)
    fitted = {**method.fit(X), "scaling": scaling.as_dict()}
    method.sanitize(X, Noise(bytes(32)), fitted)


def write_numbers(folder: Path, n: int, d: int) -> None:
    rng = np.random.default_rng(1)
    no_values = ArrayRows(schema(0, 0.0), np.zeros((n, 0)))

    def with_values(block: Block) -> Block:
        return replace(block, X=rng.random((block.n, d)))

    write_parts(map(with_values, no_values.blocks()), schema(d, 0.0), folder)
