"""The standard audit of one shadow draw, with its splits, of a large table.

Its minutes and its memory have limits of their own. Nothing else runs so many attacks at once, so
the peer is a yardstick for the machine: scikit-learn's search for the nearest rows of 2,000 people.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import numpy as np

from benchmarks.harness import Comparison, Figure, Side
from benchmarks.memory import peak
from ppdm_core.audit.runner import Auditor, audit_names
from ppdm_core.audit.simulation import Draw, Truth
from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import Attacker, Policy
from ppdm_core.model.rows import ArrayRows, gathered
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers import make_sanitizer

MOST_GB, MOST_MINUTES = 3.0, 3.0
PEOPLE = 2_000
SMALL = ("transform_inverse", "record_linkage")


@contextmanager
def compared(small: bool) -> Iterator[list[Comparison]]:
    n, d = (100, 3) if small else (100_000, 20)
    names = SMALL if small else audit_names(Policy(required=(), limits={}))
    rows = table(n, d)
    start = time.perf_counter()
    memory = peak(audited, n, d, names)
    seconds = time.perf_counter() - start
    yield [
        Comparison(
            "audit",
            Side(
                f"{len(names)} audits of {n:,} x {d}, pca_laplace, 1 draw",
                lambda: run(auditor(rows), names),
            ),
            Side(
                f"scikit-learn NearestNeighbors, brute, {PEOPLE:,} people",
                lambda: brute(rows.whole.X),
            ),
            figures=(
                Figure(f"GB, {n:,} x {d}", memory / 1e9, MOST_GB),
                Figure(f"Minutes, {n:,} x {d}, with the draws", seconds / 60, MOST_MINUTES),
            ),
        )
    ]


def table(n: int, d: int) -> ArrayRows:
    """Columns that have something in common, and a label."""
    rng = np.random.default_rng(1)
    factors = rng.standard_normal((n, 6))
    Z = factors @ rng.standard_normal((6, d)) + 0.5 * rng.standard_normal((n, d))
    schema = Schema(
        tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(d)), label=Categorical("y", ("a", "b"))
    )
    key = rng.integers(0, 256, size=(n, 16), dtype=np.uint8)
    return ArrayRows(schema, 1.0 / (1.0 + np.exp(-Z / 2)), (Z[:, 0] > 0).astype(np.int32), key)


def auditor(rows: ArrayRows) -> Auditor:
    """One draw of everybody, and splits as a release has them."""
    policy = Policy(required=(), limits={}, attacker=Attacker(known_records=40, sample_share=0.01))
    rng = np.random.default_rng(2)
    everybody = drawn(rows, np.arange(rows.n), 0)
    splits = []
    for number in range(policy.splits):
        members = np.sort(rng.permutation(rows.n)[: rows.n // 2])
        splits.append(replace(drawn(rows, members, 1 + number), source=members, members=members))
    truth = Truth(rows.whole.X, rows.whole.label, rows.schema)
    return Auditor(truth, [everybody], policy, b"benchmark", splits)


def drawn(rows: ArrayRows, records: Ints, number: int) -> Draw:
    whole = rows.whole
    part = ArrayRows(rows.schema, whole.X[records], whole.label[records], whole.key[records])
    method = make_sanitizer("pca_laplace", {"b": 0.3, "basis": "private"})
    released = method.sanitize(part, Noise(bytes([number]) * 32), method.fit(part))
    return Draw(gathered(released.rows.blocks(), part.n).X, released.public)


def run(audit: Auditor, names: tuple[str, ...]) -> None:
    """On one thread of BLAS, like the process that attacks."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"):
        for name in names:
            with suppress(NotApplicable):
                audit.run(name)


def audited(n: int, d: int, names: tuple[str, ...]) -> None:
    run(auditor(table(n, d)), names)


def brute(X: Floats) -> None:
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(X)
    search.kneighbors(X[:PEOPLE], return_distance=False)
