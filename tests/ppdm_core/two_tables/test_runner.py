"""The audit of two tables of any origin: in which scale, whose rows, who counts."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from ppdm_core import audit_tables
from ppdm_core.attacks import ATTACKS
from ppdm_core.model.attacker import Attack, AttackerView, Estimate
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Attacker, Policy
from ppdm_core.model.reasons import Reason
from ppdm_core.model.score import AuditReport, Score
from ppdm_core.two_tables.comparison import TableComparison, compare_tables
from ppdm_core.two_tables.runner import TableAuditor
from ppdm_core.two_tables.tables import as_table

N, D, K = 60, 4, 10
RNG = np.random.default_rng(5)
X = RNG.gamma(2.0, 1.0, (N, D)) * [1.0, 10.0, 100.0, 0.1]
OTHERS = RNG.gamma(2.0, 1.0, (45, D)) * [1.0, 10.0, 100.0, 0.1]
Q = np.linalg.qr(RNG.normal(size=(D, D)))[0]


def only(*names: str, known: int = K, share: float = 0.0) -> Policy:
    return Policy(required=names, limits={}, attacker=Attacker(known, share), effort="quick")


def audited(
    released: Any, *names: str, original: Any = X, known: int = K, share: float = 0.0, **given: Any
) -> AuditReport:
    policy = only(*names, known=known, share=share)
    return audit_tables(original, released, policy=policy, **given)


def value(report: AuditReport, name: str) -> float:
    return next(score.value for score in report.scores if score.name == name)


def private(report: AuditReport) -> list[Score]:
    """Without what the release is worth, which is always measured."""
    return [score for score in report.scores if score.kind == "privacy"]


def frame(values: np.ndarray, prefix: str = "c") -> pd.DataFrame:
    return pd.DataFrame({f"{prefix}{j}": column for j, column in enumerate(values.T)})


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    spy = Spy()
    monkeypatch.setitem(ATTACKS, "spy", spy)
    return spy


class Spy(Attack):
    """Infers all columns of a person from the closest row, and remembers what it saw."""

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


def test_a_copy_is_broken_altogether():
    report = audited(X.copy(), "transform_inverse", "record_linkage")
    assert value(report, "transform_inverse.breach_rate") == 1.0
    assert value(report, "record_linkage.rate") == 1.0
    assert {score.n for score in private(report)} == {N - K}


def test_noise_alone_gives_nothing_away():
    report = audited(RNG.permutation(X), "transform_inverse", "record_linkage")
    assert value(report, "transform_inverse.breach_rate") < 0.1
    assert value(report, "record_linkage.rate") < 0.15


def test_values_count_in_units_of_the_range_of_the_original():
    """Half a range off in one column of four, whatever its unit."""
    for column in range(D):
        moved = X.copy()
        moved[::2, column] += 0.5 * np.ptp(X[:, column])
        case = compare_tables(as_table("a", X), as_table("b", moved))
        gap = case.draw.Y - case.truth.X
        assert np.allclose(gap[::2], 0.5 * (np.arange(D) == column))


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
def test_a_turned_table_is_found_out_in_any_scale_and_under_any_name(before: Any, prefix: str):
    turned = 3.0 * before(X) @ Q + 7.0
    case = compare_tables(as_table("a", frame(X)), as_table("b", frame(turned, prefix)))
    assert case.draw.public.preserves_distances and not case.is_common
    report = audited(frame(turned, prefix), "known_pairs", original=frame(X), known=4)
    # Four records pin all but a sign, if they are compared in the right scale; else very little.
    assert value(report, "known_pairs.breach_rate") > 0.3


def test_other_columns_are_a_space_of_their_own():
    report = audited(frame(X @ Q[:, :3], "pc"), "known_pairs", "record_linkage", original=frame(X))
    assert value(report, "record_linkage.rate") > 0.5


def test_what_is_left_out_is_named():
    original = frame(X).assign(same=1.0, only_here=X[:, 0], town="x", age=X[:, 1])
    released = frame(X).assign(weight=-X[:, 0], age="20-30")
    case = compare_tables(as_table("a", original), as_table("b", released))
    assert case.truth.schema.names == ("c0", "c1", "c2", "c3")
    assert dict(case.left_out) == {
        "same": "constant",
        "only_here": "not in the release",
        "town": "no numbers",
        "age": "no numbers in the release",
        "weight": "not in the original",
    }


def test_arrays_frames_and_dicts_say_the_same():
    noisy = X + RNG.normal(size=X.shape)
    reports = [
        audited(make(noisy), "record_linkage", original=make(X))
        for make in (np.asarray, frame, lambda table: dict(frame(table)))
    ]
    assert reports[0] == reports[1] == reports[2]


def test_the_same_tables_get_the_same_answers():
    noisy = X + RNG.normal(size=X.shape)
    one, two = (audited(noisy, "known_pairs", "record_linkage") for _ in range(2))
    assert one == two


def test_known_records_are_found_by_value_and_do_not_count():
    known = np.vstack([X[7], X[3], X[3]])
    original = np.vstack([X, X[3]])
    case = compare_tables(
        as_table("a", original), as_table("b", original), known=as_table("k", known)
    )
    assert case.known is not None
    assert sorted(case.known.tolist()) == [3, 7, N]
    report = audited(original, "known_pairs", original=original, known_records=known)
    assert {score.n for score in private(report)} == {N + 1 - 3}


def test_known_records_must_be_of_the_original():
    with pytest.raises(BadInput, match="holds records that the original does not"):
        audited(X, "known_pairs", known_records=OTHERS[:2])
    with pytest.raises(BadInput, match="holds records"):
        audited(X, "known_pairs", known_records=X[[0, 0]])


def test_people_in_a_given_sample_do_not_count(spy: Spy):
    spy.goal = "reconstruct"
    sample = np.vstack([X[:20], OTHERS[:9]])
    report = audited(X + 0.01, "spy", sample=sample, known=0)
    assert {score.n for score in private(report)} == {N - 20}
    assert spy.seen[0].sample is not None
    assert len(spy.seen[0].sample) == 29


@pytest.mark.parametrize(("sample", "size"), [(0.5, 30), (12, 12), (0, None)])
def test_a_sample_is_a_share_or_a_number(spy: Spy, sample: float, size: int | None):
    spy.goal = "reconstruct"
    audited(X + 0.01, "spy", sample=sample, known_records=3)
    (view,) = spy.seen
    assert (None if view.sample is None else len(view.sample)) == size
    assert view.records is not None
    assert len(view.records) == 3


@pytest.mark.parametrize("given", [{"known_records": 59}, {"sample": 60}, {"sample": X}])
def test_somebody_must_be_left_to_attack(given: dict[str, Any]):
    with pytest.raises(BadInput, match="none is left to attack"):
        audited(X, "known_pairs", **given)


def test_the_control_is_what_members_are_compared_with(spy: Spy):
    report = audited(X.copy(), "spy", control=OTHERS)
    (score,) = private(report)
    assert (score.name, score.value) == ("spy.inference_rate", 1.0)
    assert score.baseline < 0.9
    assert spy.seen[0].reference is not None
    assert spy.seen[0].reference.n == 15


def test_without_a_control_such_attacks_are_not_run(spy: Spy):
    report = audited(X.copy(), "spy", "record_linkage")
    assert report.not_run["spy"].reason is Reason.NO_CONTROL
    assert value(report, "record_linkage.rate") == 1.0


def test_unaligned_rows_belong_to_nobody(spy: Spy):
    report = audited(
        X[::-1][:50], "spy", "record_linkage", "known_pairs", aligned=False, control=OTHERS
    )
    assert value(report, "spy.inference_rate") > 0.8
    for name in ("record_linkage", "known_pairs"):
        assert report.not_run[name].reason is Reason.NO_ALIGNMENT
    assert "spy" not in report.not_run
    assert spy.seen[0].known is None
    assert spy.seen[0].records is not None


def test_one_answer_for_everybody_is_no_reconstruction_to_build_on(spy: Spy):
    """However small its error is, nobody can be told from others by it."""
    spy.goal = "reconstruct"
    case = compare_tables(as_table("a", X), as_table("b", RNG.permutation(X)))
    auditor = TableAuditor(case, only("spy"), b"s")
    middle = np.tile(case.truth.X.mean(axis=0), (N, 1))
    spy.attack = lambda view, rng: Estimate({"mean": middle, "rows": view.Y.copy()})  # type: ignore[method-assign]
    assert ("spy", "rows") in auditor._best_reconstructions


def test_more_rows_than_records_are_fine_if_they_are_not_aligned(spy: Spy):
    report = audited(np.vstack([X, X, X]), "spy", aligned=False, control=OTHERS)
    assert value(report, "spy.inference_rate") == 1.0


def test_the_attacker_sees_the_labels_of_the_release(spy: Spy):
    spy.goal = "reconstruct"
    original = frame(X).assign(kind=["a", "b"] * (N // 2))
    released = frame(X + 0.5).assign(kind=["b"] * 7 + ["a"] * (N - 7))
    audited(released, "spy", original=original, label="kind")
    assert np.bincount(spy.seen[0].label).tolist() == [N - 7, 7]
    assert spy.seen[0].schema.label is not None


def test_a_class_may_be_a_number_here_and_a_word_there():
    original = frame(X).assign(kind=[1, 2] * (N // 2))
    released = frame(X).assign(kind=["1", "2"] * (N // 2))
    case = compare_tables(as_table("a", original), as_table("b", released), label="kind")
    assert case.truth.schema.label is not None
    assert case.truth.schema.label.categories == ("1", "2")
    assert case.label.tolist() == case.truth.label.tolist() == [0, 1] * (N // 2)


def with_cell(cell: Any) -> pd.DataFrame:
    table = frame(X).astype(object)
    table.loc[6, "c1"] = cell
    return table


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({"released": with_cell(None)}, "Column 'c1' of released has 1 cell.* row 7"),
    "infinite": ({"released": with_cell(np.inf)}, "Column 'c1' of released has 1 cell.* row 7"),
    "original": ({"original": with_cell(np.nan)}, "Column 'c1' of original has 1 cell"),
    "rows": ({"released": frame(X[:50])}, "has 60 rows and released 50.*--unaligned"),
    "few": ({"released": frame(X[:2]), "aligned": False}, "fewer than 3 rows"),
    "words": ({"released": pd.DataFrame({"a": ["x"] * N})}, "no numeric column"),
    "constant": ({"original": frame(np.ones((N, 2)))}, "no numeric column"),
    "control": ({"control": frame(X[:30])}, "30 of the 30 rows of control are rows"),
    "columns": ({"control": frame(OTHERS[:, :2])}, "Column 'c2' is missing in control"),
    "label": ({"label": "kind"}, "label 'kind' is not a column of original"),
    "vector": ({"released": X[:, 0]}, "is not two-dimensional"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_are_told(name: str):
    given, words = BAD[name]
    tables = {"original": frame(X), "released": frame(X), **given}
    with pytest.raises(BadInput, match=words) as error:
        audited(tables.pop("released"), "record_linkage", **tables)
    assert error.value.remedy


def test_the_package_is_light_until_it_is_asked():
    code = (
        "import sys, ppdm_core\n"
        "assert 'numpy' not in sys.modules\n"
        "assert callable(ppdm_core.audit_tables) and callable(ppdm_core.judge_tables)\n"
        "assert not {'pandas', 'scipy', 'duckdb'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_case_can_be_sent_to_another_process():
    case = compare_tables(as_table("a", X), as_table("b", X), control=as_table("c", OTHERS))
    sent: TableComparison = pickle.loads(pickle.dumps(case))
    assert sent.all_persons is not None
    assert np.array_equal(sent.all_persons.X[:N], case.truth.X)
