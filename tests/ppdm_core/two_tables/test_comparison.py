"""Which released columns are original ones, and whether a release is a rotated copy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ppdm_core import audit_tables
from ppdm_core.two_tables.column_alignment import measure_agreement
from ppdm_core.two_tables.comparison import (
    MIXED_RECORDS,
    NO_COMMON_GROUND,
    TableComparison,
    compare_tables,
)
from ppdm_core.two_tables.runner import TableAuditor
from ppdm_core.two_tables.tables import as_table
from tests.support.audit_cases import make_policy
from tests.support.tables import make_frame

N, D = 80, 4
RNG = np.random.default_rng(6)
UNITS = np.array([1.0, 10.0, 100.0, 0.1])
X = RNG.gamma(2.0, 1.0, (N, D)) * UNITS
OTHERS = RNG.gamma(2.0, 1.0, (N, D)) * UNITS
Q = np.linalg.qr(RNG.normal(size=(D, D)))[0]


def compare(
    released: pd.DataFrame, original: pd.DataFrame | None = None, **given: bool
) -> TableComparison:
    original = make_frame(X) if original is None else original
    return compare_tables(as_table("a", original), as_table("b", released), **given)


@pytest.mark.parametrize("aligned", [True, False])
def test_compare_tables_renamed_columns_matched_by_value(aligned: bool):
    order = [2, 0, 3, 1]
    rows = np.arange(N) if aligned else RNG.permutation(N)
    comparison = compare(make_frame(X[rows][:, order], "z"), aligned=aligned)
    assert comparison.matched == {"z0": "c2", "z1": "c0", "z2": "c3", "z3": "c1"}
    assert comparison.is_common and not comparison.unread
    # A copy has the moments of the records, and a copy in another order has their values, too.
    assert comparison.doubts[0] == MIXED_RECORDS
    assert ["exactly those" in doubt for doubt in comparison.doubts[1:]] == [True] * (not aligned)
    assert np.allclose(comparison.draw.Y, comparison.truth.X[rows])


def test_compare_tables_some_rows_columns_matched():
    comparison = compare(make_frame(X[RNG.permutation(N)[:30]], "z"), aligned=False)
    assert comparison.matched == {f"z{j}": f"c{j}" for j in range(D)}


def test_compare_tables_half_of_cells_unchanged_columns_matched():
    """Half of the cells are of other records."""
    mixed = np.where(RNG.random((N, D)) < 0.5, OTHERS, X)
    assert compare(make_frame(mixed, "z")).matched == {f"z{j}": f"c{j}" for j in range(D)}


@pytest.mark.parametrize(
    ("written", "is_read"),
    [
        ({}, True),
        ({"red": "Red"}, False),
        ({"red": "red "}, False),
        ({"red": ""}, False),
        ({"red": "a", "green": "b", "amber": "c"}, False),
    ],
)
def test_compare_tables_new_categories_are_doubts(written: dict[str, str], is_read: bool):
    """A category that is written differently in some rows, or renamed, can carry anything."""
    words = np.array(["red", "green", "amber"])
    original = make_frame(X).assign(triage=words[np.arange(N) % 3])
    released = make_frame(OTHERS).assign(triage=words[RNG.permutation(N) % 3])
    comparison = compare(released.replace({"triage": written}), original)
    assert comparison.new_categories == (() if is_read else ("triage",))
    assert any("'triage'" in why for why in comparison.doubts) is not is_read


def test_measure_agreement_excess_over_chance():
    """3 of 4 cells are equal; in unrelated columns 1/2 * 3/4 + 1/2 * 1/4 = 1/2 would be."""
    x, y = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 0.0, 1.0, 0.0])
    assert measure_agreement(x, y) == pytest.approx(0.5)
    assert measure_agreement(x, x) == 1.0
    assert measure_agreement(np.zeros(4), np.zeros(4)) == 0.0


def test_compare_tables_binary_columns_matched_only_if_aligned():
    flags = np.repeat([[0.0], [1.0]], N // 2, axis=0)
    both = np.column_stack([RNG.permutation(flags), RNG.permutation(flags)])
    original = make_frame(X).assign(sick=both[:, 0], old=both[:, 1])
    released = make_frame(X).assign(one=both[:, 1], two=both[:, 0])
    assert compare(released, original).matched == {"one": "old", "two": "sick"}
    shuffled = compare(released.iloc[RNG.permutation(N)], original, aligned=False)
    assert shuffled.matched == {} and set(shuffled.unread) == {"one", "two"}


def test_compare_tables_other_records_matched_by_distribution():
    assert compare(make_frame(OTHERS, "z"), aligned=False).matched == {
        f"z{j}": f"c{j}" for j in range(D)
    }


def test_compare_tables_one_similar_distribution_no_common_space():
    """One match may be chance; the attacks must still read the components."""
    released = make_frame(X @ Q[:, :3], "pc").assign(other=OTHERS[:, 0])
    comparison = compare(released)
    assert not comparison.is_common and not comparison.unread
    assert comparison.draw.Y.shape == (N, 4)


def test_compare_tables_equal_distributions_not_matched():
    normal, turned = RNG.normal(size=(N, D)), RNG.normal(size=(N, D))
    comparison = compare(make_frame(turned, "z"), make_frame(normal), aligned=False)
    assert not comparison.is_common
    assert comparison.doubts == (NO_COMMON_GROUND,)


def test_compare_tables_some_shared_names_common():
    released = make_frame(X[:, :2]).assign(**{f"z{j}": RNG.normal(size=N) for j in range(5)})
    comparison = compare(released)
    assert comparison.is_common and comparison.truth.schema.names == ("c0", "c1")
    assert np.allclose(comparison.draw.Y, comparison.truth.X)
    assert comparison.unread == ("z0", "z1", "z2", "z3", "z4")


def test_compare_tables_rotation_with_old_names_found():
    turned = make_frame(X @ Q).rename(columns={"c1": "z1", "c2": "z2", "c3": "z3"})
    comparison = compare(turned.assign(same=1.0))
    assert comparison.draw.public.preserves_distances and not comparison.is_common
    assert comparison.draw.Y.shape == (N, D)


def test_compare_tables_same_names_common():
    comparison = compare(make_frame(X[:, ::-1] ** 2))
    assert comparison.is_common and comparison.matched == {}


def test_compare_tables_missing_cell_in_other_column_unread():
    extra = np.where(np.arange(N) == 3, np.nan, X[:, 0])
    comparison = compare(make_frame(X).assign(extra=extra))
    assert comparison.is_common and comparison.unread == ("extra",)


@pytest.mark.extended
@pytest.mark.parametrize(
    "released",
    [np.ones((N, D)), np.zeros((N, D)), np.full((N, D), 1e-200), RNG.normal(size=X.shape) * 1e-200],
    ids=["ones", "zeros", "tiny", "tiny noise"],
)
@pytest.mark.parametrize("aligned", [True, False])
def test_audit_tables_constant_release_near_baseline(released: np.ndarray, aligned: bool):
    # Many records have 0, so that tiny values stay tiny and identify no record.
    original, control = (make_frame(np.maximum(T - 0.5 * UNITS, 0.0)) for T in (X, OTHERS))
    comparison = compare(make_frame(released), original, aligned=aligned)
    assert comparison.is_common and not comparison.draw.public.preserves_distances
    names = ("known_pairs", "record_linkage", "membership", "singling_out")
    policy = make_policy(names, known_records=10)
    report = audit_tables(
        original, make_frame(released), control=control, aligned=aligned, policy=policy
    )
    assert not report.failed
    private = [score for score in report.scores if score.kind == "privacy"]
    assert {score.name.split(".")[0] for score in private} >= set(names if aligned else names[2:])
    for score in private:
        if score.better == "down":
            assert score.low <= score.baseline + 0.02, score.name


@pytest.mark.parametrize(
    ("released", "aligned"),
    [(np.ones((N, D)), True), (RNG.normal(size=X.shape)[1:] * 1e-200, False)],
)
def test_table_auditor_constant_release_no_reconstructions(released: np.ndarray, aligned: bool):
    """Only the records that the attacker knew before differ in it."""
    comparison = compare(make_frame(released), make_frame(X - X.min(axis=0)), aligned=aligned)
    policy = make_policy(("known_pairs",), known_records=10, sample_share=0.0)
    assert TableAuditor(comparison, policy, b"seed")._best_reconstructions == []


def test_compare_tables_copy_in_tiny_unit_found():
    comparison = compare(make_frame(X * 1e-200))
    assert comparison.draw.public.preserves_distances
    assert np.allclose(np.ptp(comparison.draw.Y, axis=0), np.ptp(comparison.truth.X, axis=0))
    small = make_frame(X * 1e-200)
    assert compare(small, small).is_common
    assert compare(make_frame(OTHERS * 1e-200), small).is_common


def test_compare_tables_control_overlap_counted():
    control = as_table("c", make_frame(np.vstack([OTHERS, X[:7]])))
    comparison = compare_tables(
        as_table("a", make_frame(X)), as_table("b", make_frame(X)), control=control
    )
    assert comparison.control_overlap == 7
    assert comparison.all_persons is not None and len(comparison.all_persons.X) == 2 * N
