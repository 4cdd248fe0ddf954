"""The claims of rotation and principal components on the tables of the papers."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.model.policy import Attacker, Policy
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.model.score import Score
from ppdm_core.sanitizers import Sanitizer, make_sanitizer
from tests.support.tables import fit_sanitizer, read_cells, run_sanitizer, scale_rows

pytestmark = pytest.mark.slow
TABLES = ("iris", "wine", "wdbc", "pima", "ionosphere", "waveform")


def load(folder: Path, name: str) -> ArrayRows:
    with (folder / f"{name}.csv").open() as file:
        header, *lines = csv.reader(file)
    X = np.array([line[:-1] for line in lines], dtype=np.float64)
    varied = np.ptp(X, axis=0) > 0
    X = X[:600, varied]
    words = sorted({line[-1] for line in lines})
    label = np.array([words.index(line[-1]) for line in lines[:600]], dtype=np.int32)
    names = [name for name, keep in zip(header, varied, strict=False) if keep]
    low, high = X.min(axis=0) - 1e-9, X.max(axis=0) + 1e-9
    columns = tuple(Numeric(*c) for c in zip(names, low.tolist(), high.tolist(), strict=True))
    return ArrayRows(Schema(columns), X, label)


def audit_release(sanitizer: Sanitizer, rows: ArrayRows, *names: str) -> dict[str, Score]:
    fitted = fit_sanitizer(sanitizer, rows)
    X = scale_rows(rows, fitted)
    draws = []
    for k in range(2):
        released = run_sanitizer(sanitizer, rows, bytes([k]) * 32, fitted)
        draws.append(ReleaseDraw(read_cells(released.rows), released.public))
    attacker = Attacker(known_records=40, sample_share=0.05, epsilon=0.1)
    policy = Policy(required=names, limits={}, attacker=attacker)
    auditor = Auditor(
        OriginalTable(read_cells(X), rows.whole.label, X.schema), tuple(draws), policy, b"s"
    )
    return {score.name: score for name in names for score in auditor.run(name)}


@pytest.mark.parametrize("name", TABLES)
def test_audit_rotation_forty_known_records_recover_it(shared_data: Path, name: str):
    rows = load(shared_data, name)
    found = audit_release(
        make_sanitizer("random_rotation", {}), rows, "known_pairs", "record_linkage"
    )
    assert found["known_pairs.breach_rate"].value > 0.99
    assert found["record_linkage.rate"].value > 0.95


@pytest.mark.parametrize("name", TABLES)
def test_audit_bounded_release_record_not_linked_nor_recovered(shared_data: Path, name: str):
    rows = load(shared_data, name)
    sanitizer = make_sanitizer("pca_laplace", {"components": 2, "gamma": {"record": 1000}})
    audits = ("transform_inverse", "shrinkage", "known_pairs", "record_linkage")
    found = audit_release(sanitizer, rows, *audits)
    linked = found["record_linkage.rate"]
    assert linked.baseline is not None and linked.value - linked.baseline < 0.05
    for attack in audits[:-1]:
        breach = found[f"{attack}.breach_rate"]
        assert breach.value <= breach.baseline + 0.1, attack


@pytest.mark.parametrize("name", TABLES)
def test_facts_mean_distortion_real_table_matches(shared_data: Path, name: str):
    # Eq. 12 needs neither normal nor independent scores; a pair is a clean and a released record.
    rows, b = load(shared_data, name), 0.3
    sanitizer = make_sanitizer("pca_laplace", {"components": 2, "b": b, "basis": "private"})
    fitted = fit_sanitizer(sanitizer, rows)
    X = read_cells(scale_rows(rows, fitted))
    L = np.array(fitted["loadings"])
    Z = read_cells(run_sanitizer(sanitizer, rows, fitted=fitted).rows)
    T = (X - 0.5) @ L
    n = len(X)

    def mean_square(A: np.ndarray, B: np.ndarray) -> float:
        """Return the mean square distance of rows of A and rows of B with another number."""
        total = n * (np.sum(A**2) + np.sum(B**2)) - 2 * A.sum(axis=0) @ B.sum(axis=0)
        return float((total - np.sum((A - B) ** 2)) / (n * (n - 1)))

    eigenvalues = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    expected = 2 * 2 * b**2 - 2 * eigenvalues[2:].sum()
    found = mean_square(T, Z) - mean_square(X, X)
    # Eq. 13 without its last term: the variance of the mean by one draw of the noise.
    error = np.sqrt((16 * b**2 * eigenvalues[:2].sum() + 20 * 2 * b**4) / n)
    assert abs(found - expected) < 4 * error
