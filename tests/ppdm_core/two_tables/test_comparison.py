"""Which columns of a release are which of the original, and whether it is a turned copy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ppdm_core import audit_tables
from ppdm_core.model.policy import Attacker, Policy
from ppdm_core.two_tables.column_alignment import measure_agreement
from ppdm_core.two_tables.comparison import NO_COMMON_GROUND, TableComparison, compare_tables
from ppdm_core.two_tables.runner import TableAuditor
from ppdm_core.two_tables.tables import as_table

N, D = 80, 4
RNG = np.random.default_rng(6)
UNITS = np.array([1.0, 10.0, 100.0, 0.1])
X = RNG.gamma(2.0, 1.0, (N, D)) * UNITS
OTHERS = RNG.gamma(2.0, 1.0, (N, D)) * UNITS
Q = np.linalg.qr(RNG.normal(size=(D, D)))[0]


def frame(values: np.ndarray, prefix: str = "c") -> pd.DataFrame:
    return pd.DataFrame({f"{prefix}{j}": column for j, column in enumerate(values.T)})


def case_of(
    released: pd.DataFrame, original: pd.DataFrame | None = None, **given: bool
) -> TableComparison:
    original = frame(X) if original is None else original
    return compare_tables(as_table("a", original), as_table("b", released), **given)


@pytest.mark.parametrize("aligned", [True, False])
def test_values_give_renamed_columns_away(aligned: bool):
    order = [2, 0, 3, 1]
    rows = np.arange(N) if aligned else RNG.permutation(N)
    case = case_of(frame(X[rows][:, order], "z"), aligned=aligned)
    assert case.matched == {"z0": "c2", "z1": "c0", "z2": "c3", "z3": "c1"}
    assert case.is_common and not case.unread and not case.doubts
    assert np.allclose(case.draw.Y, case.truth.X[rows])


def test_a_part_of_the_rows_is_enough():
    case = case_of(frame(X[RNG.permutation(N)[:30]], "z"), aligned=False)
    assert case.matched == {f"z{j}": f"c{j}" for j in range(D)}


def test_some_values_in_the_clear_are_enough():
    """Half of the cells are other people's."""
    mixed = np.where(RNG.random((N, D)) < 0.5, OTHERS, X)
    assert case_of(frame(mixed, "z")).matched == {f"z{j}": f"c{j}" for j in range(D)}


def test_agreement_is_beyond_chance():
    """3 of 4 cells are equal, and of unrelated columns 1/2 * 3/4 + 1/2 * 1/4 = 1/2 would be."""
    x, y = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 0.0, 1.0, 0.0])
    assert measure_agreement(x, y) == pytest.approx(0.5)
    assert measure_agreement(x, x) == 1.0
    assert measure_agreement(np.zeros(4), np.zeros(4)) == 0.0


def test_flags_are_told_apart_row_by_row_only():
    flags = np.repeat([[0.0], [1.0]], N // 2, axis=0)
    both = np.column_stack([RNG.permutation(flags), RNG.permutation(flags)])
    original = frame(X).assign(sick=both[:, 0], old=both[:, 1])
    released = frame(X).assign(one=both[:, 1], two=both[:, 0])
    assert case_of(released, original).matched == {"one": "old", "two": "sick"}
    shuffled = case_of(released.iloc[RNG.permutation(N)], original, aligned=False)
    assert shuffled.matched == {} and set(shuffled.unread) == {"one", "two"}


def test_further_people_are_told_by_how_columns_are_spread():
    assert case_of(frame(OTHERS, "z"), aligned=False).matched == {
        f"z{j}": f"c{j}" for j in range(D)
    }


def test_one_column_that_is_spread_alike_makes_no_common_space():
    """As an accident could; the components must stay readable to the attacks."""
    released = frame(X @ Q[:, :3], "pc").assign(other=OTHERS[:, 0])
    case = case_of(released)
    assert not case.is_common and not case.unread
    assert case.draw.Y.shape == (N, 4)


def test_columns_that_are_spread_alike_among_themselves_are_not_guessed():
    normal, turned = RNG.normal(size=(N, D)), RNG.normal(size=(N, D))
    case = case_of(frame(turned, "z"), frame(normal), aligned=False)
    assert not case.is_common
    assert case.doubts == (NO_COMMON_GROUND,)


def test_a_few_shared_names_are_common():
    released = frame(X[:, :2]).assign(**{f"z{j}": RNG.normal(size=N) for j in range(5)})
    case = case_of(released)
    assert case.is_common and case.truth.schema.names == ("c0", "c1")
    assert np.allclose(case.draw.Y, case.truth.X)
    assert case.unread == ("z0", "z1", "z2", "z3", "z4")


def test_a_turned_table_is_found_out_under_some_old_names():
    turned = frame(X @ Q).rename(columns={"c1": "z1", "c2": "z2", "c3": "z3"})
    case = case_of(turned.assign(same=1.0))
    assert case.draw.public.preserves_distances and not case.is_common
    assert case.draw.Y.shape == (N, D)


def test_the_same_names_are_common_whatever_is_in_them():
    case = case_of(frame(X[:, ::-1] ** 2))
    assert case.is_common and case.matched == {}


def test_an_empty_cell_of_a_further_column_is_nobodys_business():
    extra = np.where(np.arange(N) == 3, np.nan, X[:, 0])
    case = case_of(frame(X).assign(extra=extra))
    assert case.is_common and case.unread == ("extra",)


@pytest.mark.parametrize(
    "released",
    [np.ones((N, D)), np.zeros((N, D)), np.full((N, D), 1e-200), RNG.normal(size=X.shape) * 1e-200],
    ids=["ones", "zeros", "tiny", "tiny noise"],
)
@pytest.mark.parametrize("aligned", [True, False])
def test_a_constant_release_tells_nothing(released: np.ndarray, aligned: bool):
    # Many people have 0, so that tiny values stay what they are and point at nobody.
    original, control = (frame(np.maximum(T - 0.5 * UNITS, 0.0)) for T in (X, OTHERS))
    case = case_of(frame(released), original, aligned=aligned)
    assert case.is_common and not case.draw.public.preserves_distances
    names = ("known_pairs", "record_linkage", "membership", "singling_out")
    policy = Policy(required=names, limits={}, attacker=Attacker(10, 0.1), effort="quick")
    report = audit_tables(
        original, frame(released), control=control, aligned=aligned, policy=policy
    )
    assert not report.failed
    private = [score for score in report.scores if score.kind == "privacy"]
    assert {score.name.split(".")[0] for score in private} >= set(names if aligned else names[2:])
    for score in private:
        if score.better == "down":
            assert score.low <= score.baseline + 0.02, score.name


@pytest.mark.parametrize(
    ("released", "aligned"), [(np.ones((N, D)), True), (RNG.normal(size=X.shape) * 1e-200, False)]
)
def test_one_answer_for_everybody_else_is_nothing_to_build_on(released: np.ndarray, aligned: bool):
    """The people whom the attacker knew before stand out in it, and nobody else does."""
    case = case_of(frame(released), frame(X - X.min(axis=0)), aligned=aligned)
    policy = Policy(required=("known_pairs",), limits={}, attacker=Attacker(10), effort="quick")
    assert TableAuditor(case, policy, b"seed")._best_reconstructions == []


def test_a_copy_in_a_tiny_unit_is_a_copy():
    case = case_of(frame(X * 1e-200))
    assert case.draw.public.preserves_distances
    assert np.allclose(np.ptp(case.draw.Y, axis=0), np.ptp(case.truth.X, axis=0))
    small = frame(X * 1e-200)
    assert case_of(small, small).is_common
    assert case_of(frame(OTHERS * 1e-200), small).is_common


def test_people_of_the_control_who_are_in_the_original_are_counted():
    control = as_table("c", frame(np.vstack([OTHERS, X[:7]])))
    case = compare_tables(as_table("a", frame(X)), as_table("b", frame(X)), control=control)
    assert case.control_overlap == 7
    assert case.all_persons is not None and len(case.all_persons.X) == 2 * N
