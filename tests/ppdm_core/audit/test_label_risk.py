"""What the label alone gives, and when it counts as a released column."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.audit.attack_runs import AttackRuns
from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.certifiable import count_judged_scores
from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.audit.label_risk import compute_label_chances, score_label
from ppdm_core.audit.runner import choose_audits
from ppdm_core.audit.simulation import HIDDEN_LABEL
from ppdm_core.gates.score_limits import judge_outcome
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import Limit, Policy
from ppdm_core.model.reasons import Reason
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.model.score import Score, is_sound
from tests.support.audit_cases import AS_IS, D, Spy, make_policy

LIMIT = Limit(0.2, "DPO", "1 in 5")


def make_labelled(label: np.ndarray, X: np.ndarray | None = None) -> OriginalTable:
    """Return uniform records, or the given ones, with these labels."""
    X = np.random.default_rng(2).random((len(label), D)) if X is None else X
    words = tuple(f"class {code}" for code in range(int(label.max()) + 1))
    columns = tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(X.shape[1]))
    return OriginalTable(X, label.astype(np.int32), Schema(columns, label=Categorical("y", words)))


def draw_noise(truth: OriginalTable, scale: float = 5.0) -> ReleaseDraw:
    """Return a release with noise; at the default scale its numbers tell nothing."""
    d = truth.X.shape[1]
    public = replace(AS_IS, columns=truth.schema.names, centre=np.zeros(d), loadings=np.eye(d))
    return ReleaseDraw(
        truth.X + np.random.default_rng(3).laplace(0.0, scale, truth.X.shape), public
    )


def make_halves(truth: OriginalTable, draw: ReleaseDraw) -> list[ReleaseDraw]:
    members = np.arange(0, len(truth.X), 2)
    return [ReleaseDraw(draw.Y[members], draw.public, members, members=members)]


def measure(truth: OriginalTable, name: str, scale: float = 5.0) -> Score:
    """Return the first score of an attack on a noisy release."""
    draw, policy = draw_noise(truth, scale), make_policy(known_records=0, sample_share=0.0)
    return Auditor(truth, [draw], policy, b"s", make_halves(truth, draw)).run(name)[0]


@pytest.mark.parametrize(
    ("sizes", "rate"), [([60, 40], 0.02), ([100], 0.01), ([1] * 100, 1.0), ([98, 1, 1], 0.03)]
)
def test_score_label_classes_over_records(sizes: list[int], rate: float):
    truth = make_labelled(np.repeat(np.arange(len(sizes)), sizes))
    score = score_label(truth, ReleaseDraw(truth.X, AS_IS))
    assert score.name == "label.rate"
    assert score.low == score.value == score.high == pytest.approx(rate)
    assert (score.baseline, score.n) == (0.01, 100)
    assert is_sound(score)


def test_score_label_worst_tenth_smallest_classes():
    truth = make_labelled(np.repeat([0, 1, 2, 3], [85, 5, 5, 5]))
    score = score_label(truth, ReleaseDraw(truth.X, AS_IS))
    assert score.worst_decile == pytest.approx(1 / 5)


def test_score_label_resampled_rows_of_a_record_count_once():
    truth = make_labelled(np.repeat([0, 1], [50, 50]))
    source = np.repeat(np.arange(0, 100, 2), 3)  # half of the records, three rows each
    score = score_label(truth, ReleaseDraw(truth.X[source], AS_IS, source))
    assert (score.value, score.baseline, score.n) == (pytest.approx(2 / 50), 1 / 50, 50)


def test_score_label_released_label_differs_only_equal_ones_found():
    known, rows = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
    assert compute_label_chances(known, rows, rows).tolist() == [1.0, 0.0, 1 / 3, 1 / 3]
    assert compute_label_chances(np.array([0, 7]), rows).tolist() == [1.0, 0.0]


def test_score_label_unknown_alignment_assumes_own_row():
    truth = make_labelled(np.arange(60))
    unaligned = ReleaseDraw(truth.X, AS_IS, np.full(60, -1), label=truth.label[::-1])
    assert score_label(truth, unaligned).value == 1.0


def test_score_label_without_label_does_not_apply():
    truth = replace(make_labelled(np.zeros(60, dtype=int)), schema=Schema(()))
    with pytest.raises(NotApplicable) as caught:
        score_label(truth, ReleaseDraw(truth.X, AS_IS))
    assert caught.value.skip.reason is Reason.NO_LABEL


def test_choose_audits_quick_includes_label():
    assert "label" in choose_audits(Policy((), {}, effort="quick"))


def test_count_judged_scores_label_limit_no_effect():
    limits = {"record_linkage.rate": LIMIT, "known_pairs.breach_rate": LIMIT}
    with_label = Policy((), {**limits, "label.rate": LIMIT})
    assert count_judged_scores(with_label) == count_judged_scores(Policy((), limits))


@pytest.mark.parametrize(("smallest", "baseline"), [(50, 2 / 100), (49, 1 / 100)])
def test_record_linkage_small_class_baseline_without_label(smallest: int, baseline: float):
    truth = make_labelled(np.repeat([0, 1], [100 - smallest, smallest]))
    assert measure(truth, "record_linkage").baseline == pytest.approx(baseline)


def test_record_linkage_secret_label_counts_against_limit():
    """Noise hides every number, and pairs of records share a label."""
    score = measure(make_labelled(np.repeat(np.arange(100), 2)), "record_linkage")
    assert 0.35 < score.value < 0.65
    assert score.baseline == 1 / 200
    assert judge_outcome(score, LIMIT) == "FAIL"


@pytest.mark.parametrize(("size", "outcome"), [(45, "FAIL"), (60, "PASS")])
def test_attribute_inference_secret_label_counts_against_limit(size: int, outcome: str):
    """The label gives one of two columns, to members and to persons outside alike."""
    label = np.repeat(np.arange(10), size)
    X = np.column_stack([np.linspace(0, 1, 10)[label], np.random.default_rng(5).random(10 * size)])
    score = measure(make_labelled(label, X), "attribute_inference", scale=0.1)
    assert judge_outcome(score, LIMIT) == outcome


@pytest.mark.parametrize(("size", "is_hidden"), [(50, False), (10, True)])
@pytest.mark.parametrize("goal", ["infer", "member"])
def test_attack_runs_small_classes_hide_labels_of_control(size: int, is_hidden: bool, goal: str):
    truth = make_labelled(np.arange(200) // size)
    draw = draw_noise(truth)
    runs = AttackRuns(truth, [draw], make_policy(), b"s", make_halves(truth, draw))
    spy = Spy(goal=goal)
    runs.run_trials(spy)
    (view,), (trial,) = spy.seen, runs.half_trials
    assert view.targets is not None
    labels, roles = view.targets.label, trial.participants
    true = truth.label[roles.targets]
    is_shown = labels == true
    assert is_shown[roles.is_member].all()
    if is_hidden and goal == "infer":
        assert set(labels[~roles.is_member]) == {HIDDEN_LABEL}
    else:
        assert is_shown.all()
    assert set(view.label) <= set(truth.label)
