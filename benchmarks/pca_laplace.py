"""``pca_laplace`` against scikit-learn's PCA with numpy's Laplace noise, which has no key.

Its memory has limits of its own, as has the memory of ``kde_resample`` from Parquet parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.harness import Comparison, Figure, Side
from benchmarks.memory import measure_peak_memory
from ppdm_core.model.arrays import Floats
from ppdm_core.model.rows import ArrayRows, Block, Rows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers import Sanitizer
from ppdm_core.sanitizers.kde_resample import KdeResample
from ppdm_core.sanitizers.pca_laplace import PcaLaplace
from warehouse.parquet_parts import PartRows, write_parts

NOISE_B = 0.3


@contextmanager
def build_comparisons(small: bool) -> Iterator[list[Comparison]]:
    """Compare a release with scikit-learn and numpy."""
    n, d = (500, 6) if small else (100_000, 100)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / d
    X = np.clip(X, -1.0, 1.0)
    figures = measure_toy_memory() if small else measure_memory()
    yield [
        Comparison(
            "pca_laplace",
            Side(f"fit and sanitize {n:,} x {d} to {d // 2} components", lambda: release_keyed(X)),
            Side(
                "scikit-learn PCA(fit_transform) and numpy Laplace", lambda: release_with_numpy(X)
            ),
            figures=tuple(figures),
        )
    ]


def release_keyed(X: Floats) -> None:
    """Fit and release a table."""
    rows = ArrayRows(make_schema(X.shape[1], -1.0), X)
    method = PcaLaplace(components=X.shape[1] // 2, b=NOISE_B, basis="private")
    method.sanitize(rows, Noise(bytes(32)), method.fit(rows))


def release_with_numpy(X: Floats) -> None:
    """Compute components with scikit-learn and add numpy noise."""
    from sklearn.decomposition import PCA

    scores = PCA(n_components=X.shape[1] // 2).fit_transform(X)
    scores + np.random.default_rng(1).laplace(scale=2 * NOISE_B, size=scores.shape)


def make_schema(d: int, low: float) -> Schema:
    """Return numeric columns with bounds from ``low`` to 1."""
    return Schema(tuple(Numeric(f"x{i}", low, 1.0) for i in range(d)))


def measure_toy_memory() -> list[Figure]:
    """Return the memory figures at a small size."""
    return [
        measure_copies(1000, 5, make_pca("isotropic")),
        *measure_from_parts(1000, 5, make_pca("isotropic")),
    ]


def measure_memory() -> list[Figure]:
    """Return the memory figures at full size."""
    shapes = [make_pca("isotropic"), make_pca("per_component")]
    figures = [measure_copies(1_000_000, 50, method) for method in shapes]
    figures += measure_from_parts(1_000_000, 50, *shapes)
    for n in (100_000, 400_000, 1_000_000):
        figures += measure_from_parts(n, 20, KdeResample())
    return figures


def measure_copies(n: int, d: int, method: Sanitizer) -> Figure:
    """Return the peak memory of a release, including its input, in copies of the input."""
    copies = measure_peak_memory(release_array, n, d, method) / (n * d * 8)
    return Figure(
        f"Copies of the input in memory, {format_method(method)}, {n:,} x {d}", copies, 2.0
    )


def measure_from_parts(n: int, d: int, *methods: Sanitizer) -> list[Figure]:
    """Return the peak memory of releases that read Parquet parts."""
    with TemporaryDirectory() as folder:
        parts = Path(folder) / "input"
        write_random_parts(parts, n, d)
        peaks = [measure_peak_memory(release_parts, parts, d, method) / 1e6 for method in methods]
    return [
        Figure(f"MB from Parquet parts, {format_method(method)}, {n:,} x {d}", peak, 500.0)
        for method, peak in zip(methods, peaks, strict=True)
    ]


def format_method(method: Sanitizer) -> str:
    """Return the name of a method and its noise shape."""
    return f"{method.name} {getattr(method, 'noise_shape', '')}".strip()


def make_pca(shape: str) -> PcaLaplace:
    """Return the method with one noise shape."""
    return PcaLaplace(b=NOISE_B, basis="private", noise_shape=shape)


def release_array(n: int, d: int, method: Sanitizer) -> None:
    """Release a random table from memory."""
    X = np.random.default_rng(1).random((n, d))
    scale_and_release(ArrayRows(make_schema(d, 0.0), X), method)


def release_parts(folder: Path, d: int, method: Sanitizer) -> None:
    """Release a table from Parquet parts."""
    scale_and_release(PartRows(make_schema(d, 0.0), folder), method)


def scale_and_release(rows: Rows, method: Sanitizer) -> None:
    """Scale, fit and release a table."""
    scaling = fit_scaling(rows, method.scale)
    X = scaling.apply(rows)
    fitted = {**method.fit(X), "scaling": scaling.as_dict()}
    method.sanitize(X, Noise(bytes(32)), fitted)


def write_random_parts(folder: Path, n: int, d: int) -> None:
    """Write a random table as Parquet parts, block by block."""
    rng = np.random.default_rng(1)
    empty_rows = ArrayRows(make_schema(0, 0.0), np.zeros((n, 0)))

    def fill_block(block: Block) -> Block:
        return replace(block, X=rng.random((block.n, d)))

    write_parts(map(fill_block, empty_rows.blocks()), make_schema(d, 0.0), folder)
