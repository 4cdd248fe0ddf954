"""The standard audit of one shadow draw, with its splits, of a large table.

Its minutes and its memory have limits of their own. No other tool runs so many attacks at once, so
the peer only measures the machine: scikit-learn's search for the nearest rows of 2,000 records.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.harness import Comparison, Figure, Side
from benchmarks.memory import measure_peak_memory
from ppdm_core.audit.audited_part import choose_part
from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import collect_inputs, draw_shadows
from ppdm_core.audit.runner import choose_audits, run_audit
from ppdm_core.model.arrays import Floats
from ppdm_core.model.policy import Attacker, Policy
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.scaling import fit_scaling
from ppdm_core.sanitizers import make_sanitizer

MAX_GB, MAX_MINUTES = 3.0, 3.0
SEARCHED_RECORDS = 2_000
SMALL_AUDITS = ("transform_inverse", "record_linkage")


@contextmanager
def build_comparisons(small: bool) -> Iterator[list[Comparison]]:
    """Compare an audit with a brute-force search."""
    n, d = (100, 3) if small else (100_000, 20)
    names = SMALL_AUDITS if small else choose_audits(Policy(required=(), limits={}))
    rows = make_table(n, d)
    start = time.perf_counter()
    memory = measure_peak_memory(audit_table, n, d, names)
    seconds = time.perf_counter() - start
    yield [
        Comparison(
            "audit",
            Side(
                f"{len(names)} audits of {n:,} x {d}, pca_laplace, 1 draw",
                lambda: run_audits(make_auditor(rows), names),
            ),
            Side(
                f"scikit-learn NearestNeighbors, brute, {SEARCHED_RECORDS:,} records",
                lambda: search_brute_force(rows.whole.X),
            ),
            figures=(
                Figure(f"GB, {n:,} x {d}", memory / 1e9, MAX_GB),
                Figure(f"Minutes, {n:,} x {d}, with the draws", seconds / 60, MAX_MINUTES),
            ),
        )
    ]


def make_table(n: int, d: int) -> ArrayRows:
    """Return correlated columns and a label."""
    rng = np.random.default_rng(1)
    factors = rng.standard_normal((n, 6))
    Z = factors @ rng.standard_normal((6, d)) + 0.5 * rng.standard_normal((n, d))
    schema = Schema(
        tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(d)), label=Categorical("y", ("a", "b"))
    )
    key = rng.integers(0, 256, size=(n, 16), dtype=np.uint8)
    return ArrayRows(schema, 1.0 / (1.0 + np.exp(-Z / 2)), (Z[:, 0] > 0).astype(np.int32), key)


def make_policy() -> Policy:
    """Return a policy that limits nothing, with one draw of all records."""
    attacker = Attacker(known_records=40, sample_share=0.01)
    return Policy(required=(), limits={}, attacker=attacker, shadow_draws=1)


def make_auditor(rows: ArrayRows) -> Auditor:
    """Draw one release of all records, and halves as in the pipeline, and return the auditor."""
    policy = make_policy()
    method = make_sanitizer("pca_laplace", {"b": 0.3, "basis": "private"})
    fitted = {**method.fit(rows), "scaling": fit_scaling(rows, "none").as_dict()}
    draws = draw_shadows(
        rows, method, Noise(bytes(32)), fitted, policy, scope=("benchmark",), refit_halves=True
    )
    part = choose_part(rows, Noise(bytes(32)))
    inputs = collect_inputs(rows, draws, row_aligned=True, part=part)
    return Auditor(inputs.original, inputs.draws, policy, b"benchmark", inputs.halves)


def run_audits(auditor: Auditor, names: tuple[str, ...]) -> None:
    """Run audits on one thread of BLAS, like the attack process."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"):
        run_audit(auditor.run_one, names)


def audit_table(n: int, d: int, names: tuple[str, ...]) -> None:
    """Draw and audit a table of some size."""
    run_audits(make_auditor(make_table(n, d)), names)


def search_brute_force(X: Floats) -> None:
    """Find the nearest rows of some records with scikit-learn."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(X)
    search.kneighbors(X[:SEARCHED_RECORDS], return_distance=False)
