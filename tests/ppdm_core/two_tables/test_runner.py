"""The audit of two tables of any origin: scale, alignment, and the records that are scored."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from ppdm_core import audit_tables
from ppdm_core.attacks import ATTACKS, Attack
from ppdm_core.model.attacker import AttackerView, Estimate
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Policy
from ppdm_core.model.reasons import Reason
from ppdm_core.model.score import AuditReport, Score
from ppdm_core.two_tables.comparison import TableComparison, compare_tables
from ppdm_core.two_tables.runner import TableAuditor
from ppdm_core.two_tables.tables import as_table
from tests.support.audit_cases import make_policy
from tests.support.tables import make_frame

N, D, K = 60, 4, 10
RNG = np.random.default_rng(5)
X = RNG.gamma(2.0, 1.0, (N, D)) * [1.0, 10.0, 100.0, 0.1]
OTHERS = RNG.gamma(2.0, 1.0, (45, D)) * [1.0, 10.0, 100.0, 0.1]
Q = np.linalg.qr(RNG.normal(size=(D, D)))[0]


def require(*names: str, known: int = K, share: float = 0.0) -> Policy:
    return make_policy(names, known_records=known, sample_share=share)


def audit(
    released: Any, *names: str, original: Any = X, known: int = K, share: float = 0.0, **given: Any
) -> AuditReport:
    policy = require(*names, known=known, share=share)
    return audit_tables(original, released, policy=policy, **given)


def find_value(report: AuditReport, name: str) -> float:
    return next(score.value for score in report.scores if score.name == name)


def list_privacy_scores(report: AuditReport) -> list[Score]:
    """Return the scores without utility, which is always measured."""
    return [score for score in report.scores if score.kind == "privacy"]


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    spy = Spy()
    monkeypatch.setitem(ATTACKS, "spy", spy)
    return spy


class Spy(Attack):
    """Infers all columns of a target from the nearest row, and records its views."""

    name: ClassVar[str] = "spy"
    story: ClassVar[str] = "A spy."
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self.seen: list[AttackerView] = []
        self.goal = "infer"

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        self.seen.append(view)
        assert view.targets is not None
        gaps = np.linalg.norm(view.targets.X[:, None] - view.Y, axis=2)
        if self.goal == "reconstruct":
            return Estimate({"rows": view.Y.copy()})
        return Estimate({"closest": view.Y[gaps.argmin(axis=1)]})


def test_audit_tables_copy_broken_completely():
    report = audit(X.copy(), "transform_inverse", "record_linkage")
    assert find_value(report, "transform_inverse.breach_rate") == 1.0
    assert find_value(report, "record_linkage.rate") == 1.0
    few = {"record_linkage.surest.rate": (N - K) // 10, "record_linkage.few.rate": 5}
    for score in list_privacy_scores(report):
        assert score.n == few.get(score.name, N - K)


def test_audit_tables_permuted_records_near_baseline():
    report = audit(RNG.permutation(X), "transform_inverse", "record_linkage")
    assert find_value(report, "transform_inverse.breach_rate") < 0.1
    assert find_value(report, "record_linkage.rate") < 0.15


def test_compare_tables_values_in_units_of_original_range():
    """One column of four is off by half of its range, in any unit."""
    for column in range(D):
        moved = X.copy()
        moved[::2, column] += 0.5 * np.ptp(X[:, column])
        comparison = compare_tables(as_table("a", X), as_table("b", moved))
        gap = comparison.draw.Y - comparison.truth.X
        assert np.allclose(gap[::2], 0.5 * (np.arange(D) == column))


@pytest.mark.extended
@pytest.mark.parametrize(
    "before",
    [
        lambda x: x,
        lambda x: (x - x.min(axis=0)) / np.ptp(x, axis=0),
        lambda x: (x - x.mean(axis=0)) / x.std(axis=0, ddof=1),
    ],
    ids=["raw", "ranges", "deviations"],
)
@pytest.mark.parametrize("prefix", ["c", "other"])
def test_compare_tables_rotation_any_scale_and_names_found(before: Any, prefix: str):
    turned = 3.0 * before(X) @ Q + 7.0
    comparison = compare_tables(
        as_table("a", make_frame(X)), as_table("b", make_frame(turned, prefix))
    )
    assert comparison.draw.public.preserves_distances and not comparison.is_common
    report = audit(make_frame(turned, prefix), "known_pairs", original=make_frame(X), known=4)
    # Four records pin all but a sign, if they are compared in the right scale; else very little.
    assert find_value(report, "known_pairs.breach_rate") > 0.3


def test_audit_tables_other_columns_linked():
    report = audit(
        make_frame(X @ Q[:, :3], "pc"), "known_pairs", "record_linkage", original=make_frame(X)
    )
    assert find_value(report, "record_linkage.rate") > 0.5


def test_compare_tables_left_out_columns_with_reason():
    original = make_frame(X).assign(same=1.0, only_here=X[:, 0], town="x", age=X[:, 1])
    released = make_frame(X).assign(weight=-X[:, 0], age="20-30")
    comparison = compare_tables(as_table("a", original), as_table("b", released))
    assert comparison.truth.schema.names == ("c0", "c1", "c2", "c3")
    assert dict(comparison.left_out) == {
        "same": "constant",
        "only_here": "not in the release",
        "town": "no numbers",
        "age": "no numbers in the release",
        "weight": "not in the original",
    }


def test_audit_tables_arrays_frames_and_dicts_same_report():
    noisy = X + RNG.normal(size=X.shape)
    reports = [
        audit(make(noisy), "record_linkage", original=make(X))
        for make in (np.asarray, make_frame, lambda table: dict(make_frame(table)))
    ]
    assert reports[0] == reports[1] == reports[2]


def test_audit_tables_repeated_same_report():
    noisy = X + RNG.normal(size=X.shape)
    one, two = (audit(noisy, "known_pairs", "record_linkage") for _ in range(2))
    assert one == two


def test_audit_tables_known_records_matched_and_not_scored():
    known = np.vstack([X[7], X[3], X[3]])
    original = np.vstack([X, X[3]])
    comparison = compare_tables(
        as_table("a", original), as_table("b", original), known=as_table("k", known)
    )
    assert comparison.known is not None
    assert sorted(comparison.known.tolist()) == [3, 7, N]
    report = audit(original, "known_pairs", original=original, known_records=known)
    assert {score.n for score in list_privacy_scores(report)} == {N + 1 - 3}


def test_audit_tables_foreign_known_records_refused():
    with pytest.raises(BadInput, match="holds records that the original does not"):
        audit(X, "known_pairs", known_records=OTHERS[:2])
    with pytest.raises(BadInput, match="holds records"):
        audit(X, "known_pairs", known_records=X[[0, 0]])


def test_audit_tables_given_sample_not_scored(spy: Spy):
    spy.goal = "reconstruct"
    sample = np.vstack([X[:20], OTHERS[:9]])
    report = audit(X + 0.01, "spy", sample=sample, known=0)
    assert {score.n for score in list_privacy_scores(report)} == {N - 20}
    assert spy.seen[0].sample is not None
    assert len(spy.seen[0].sample) == 29


@pytest.mark.parametrize(("sample", "size"), [(0.5, 30), (12, 12), (0, None)])
def test_audit_tables_sample_share_or_count(spy: Spy, sample: float, size: int | None):
    spy.goal = "reconstruct"
    audit(X + 0.01, "spy", sample=sample, known_records=3)
    (view,) = spy.seen
    assert (None if view.sample is None else len(view.sample)) == size
    assert view.records is not None
    assert len(view.records) == 3


@pytest.mark.parametrize("given", [{"known_records": 59}, {"sample": 60}, {"sample": X}])
def test_audit_tables_no_target_left_refused(given: dict[str, Any]):
    with pytest.raises(BadInput, match="none is left to attack"):
        audit(X, "known_pairs", **given)


def test_audit_tables_control_is_baseline_of_members(spy: Spy):
    report = audit(X.copy(), "spy", control=OTHERS)
    (score,) = list_privacy_scores(report)
    assert (score.name, score.value) == ("spy.inference_rate", 1.0)
    assert score.baseline < 0.9
    assert spy.seen[0].reference is not None
    assert spy.seen[0].reference.n == 15


def test_audit_tables_without_control_attack_not_run(spy: Spy):
    report = audit(X.copy(), "spy", "record_linkage")
    assert report.not_run["spy"].reason is Reason.NO_CONTROL
    assert find_value(report, "record_linkage.rate") == 1.0


def test_audit_tables_unaligned_rows_no_linkage(spy: Spy):
    report = audit(
        X[::-1][:50], "spy", "record_linkage", "known_pairs", aligned=False, control=OTHERS
    )
    assert find_value(report, "spy.inference_rate") > 0.8
    for name in ("record_linkage", "known_pairs"):
        assert report.not_run[name].reason is Reason.NO_ALIGNMENT
    assert "spy" not in report.not_run
    assert spy.seen[0].known is None
    assert spy.seen[0].records is not None


def test_table_auditor_constant_candidate_not_reused(spy: Spy):
    """However small its error is, one value for all records distinguishes none."""
    spy.goal = "reconstruct"
    comparison = compare_tables(as_table("a", X), as_table("b", RNG.permutation(X)))
    auditor = TableAuditor(comparison, require("spy"), b"s")
    middle = np.tile(comparison.truth.X.mean(axis=0), (N, 1))
    spy.attack = lambda view, rng: Estimate({"mean": middle, "rows": view.Y.copy()})  # type: ignore[method-assign]
    assert ("spy", "rows") in auditor._best_reconstructions


def test_audit_tables_unaligned_more_rows_than_records(spy: Spy):
    report = audit(np.vstack([X, X, X]), "spy", aligned=False, control=OTHERS)
    assert find_value(report, "spy.inference_rate") == 1.0


def test_audit_tables_view_has_released_labels(spy: Spy):
    spy.goal = "reconstruct"
    original = make_frame(X).assign(kind=["a", "b"] * (N // 2))
    released = make_frame(X + 0.5).assign(kind=["b"] * 7 + ["a"] * (N - 7))
    audit(released, "spy", original=original, label="kind")
    assert np.bincount(spy.seen[0].label).tolist() == [N - 7, 7]
    assert spy.seen[0].schema.label is not None


def test_compare_tables_class_as_number_or_text_same_code():
    original = make_frame(X).assign(kind=[1, 2] * (N // 2))
    released = make_frame(X).assign(kind=["1", "2"] * (N // 2))
    comparison = compare_tables(as_table("a", original), as_table("b", released), label="kind")
    assert comparison.truth.schema.label is not None
    assert comparison.truth.schema.label.categories == ("1", "2")
    assert comparison.draw.label.tolist() == comparison.truth.label.tolist() == [0, 1] * (N // 2)


def set_cell(cell: Any) -> pd.DataFrame:
    table = make_frame(X).astype(object)
    table.loc[6, "c1"] = cell
    return table


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "infinite": ({"released": set_cell(np.inf)}, "Column 'c1' of released has 1 cell.* row 7"),
    "rows": (
        {"released": make_frame(X[:50]), "aligned": True},
        "has 60 rows and released 50.*--unaligned",
    ),
    "few": ({"released": make_frame(X[:2]), "aligned": False}, "fewer than 3 rows"),
    "words": ({"released": pd.DataFrame({"a": ["x"] * N})}, "no numeric column"),
    "constant": ({"original": make_frame(np.ones((N, 2)))}, "no numeric column"),
    "control": ({"control": make_frame(X[:30])}, "30 of the 30 rows of control are rows"),
    "columns": ({"control": make_frame(OTHERS[:, :2])}, "Column 'c2' is missing in control"),
    "label": ({"label": "kind"}, "label 'kind' is not a column of original"),
    "vector": ({"released": X[:, 0]}, "is not two-dimensional"),
}


@pytest.mark.parametrize("name", BAD)
def test_audit_tables_bad_table_refused(name: str):
    given, words = BAD[name]
    tables = {"original": make_frame(X), "released": make_frame(X), **given}
    with pytest.raises(BadInput, match=words) as error:
        audit(tables.pop("released"), "record_linkage", **tables)
    assert error.value.remedy


def test_ppdm_core_import_loads_nothing_heavy():
    code = (
        "import sys, ppdm_core\n"
        "assert 'numpy' not in sys.modules\n"
        "assert callable(ppdm_core.audit_tables) and callable(ppdm_core.judge_tables)\n"
        "assert not {'pandas', 'scipy', 'duckdb'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_table_comparison_pickle_round_trip():
    comparison = compare_tables(as_table("a", X), as_table("b", X), control=as_table("c", OTHERS))
    sent: TableComparison = pickle.loads(pickle.dumps(comparison))
    assert sent.all_persons is not None
    assert np.array_equal(sent.all_persons.X[:N], comparison.truth.X)
