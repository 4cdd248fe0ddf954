"""Comparing releases, on tables small enough to say who must be found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.attacks.release_differencing import ReleaseDifferencing
from ppdm_core.audit.draws import EarlierReleases, OriginalTable, ReleaseDraw
from ppdm_core.audit.runner import Auditor
from ppdm_core.audit.self_test.leaks import describe_noisy_columns, unit_box
from ppdm_core.model.attacker import Batches
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import Attacker, Policy
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.score import Score
from tests.support.views import make_records, make_view

N, D = 120, 3
POLICY = Policy(
    required=("release_differencing",),
    limits={},
    attacker=Attacker(known_records=0),
    effort="quick",
)
X = np.random.default_rng(1).random((N, D))
LABEL = np.zeros(N, dtype=np.int32)
SECRET = PublicParameters("random_rotation", "rotated", ("a", "b", "c"))


def scores(
    Y: np.ndarray, public: PublicParameters, since: np.ndarray, gone: int = 0
) -> dict[str, Score]:
    past = EarlierReleases((), np.full_like(Y, np.nan), since, gone)
    truth = OriginalTable(X, LABEL, unit_box(D))
    auditor = Auditor(truth, [ReleaseDraw(Y, public)], POLICY, b"seed", past=past)
    return {score.name: score for score in auditor.run("release_differencing")}


def rate(found: dict[str, Score], scenario: str = "") -> float:
    return found[".".join(filter(None, ("release_differencing", scenario, "rate")))].value


def test_who_comes_alone_is_found_without_a_look_at_the_values():
    noise = np.random.default_rng(2).standard_normal((N, D))
    assert rate(scores(noise, SECRET, np.arange(N))) == 1.0


@pytest.mark.parametrize("size", [2, 5, 20])
def test_who_comes_with_others_is_one_of_them(size: int):
    noise = np.random.default_rng(2).standard_normal((N, D))
    score = scores(noise, SECRET, np.arange(N) // size)["release_differencing.rate"]
    assert score.low <= 1 / size <= score.high
    assert score.baseline == pytest.approx(1 / N)


def test_values_help_within_a_batch():
    Y = X + np.random.default_rng(3).laplace(0.0, 0.3, X.shape)
    alone, together = (
        rate(scores(Y, describe_noisy_columns(D, 0.3), since))
        for since in (np.arange(N) // 4, np.zeros(N, dtype=np.int64))
    )
    assert together + 0.2 < alone < 1.0


def test_a_first_release_is_one_batch_and_linked_as_any_other():
    Y = X + 0.1 * np.random.default_rng(3).standard_normal((N, D))
    at_once = EarlierReleases((), np.full_like(Y, np.nan), np.zeros(N, dtype=np.int64))
    truth, draw = (
        OriginalTable(X, LABEL, unit_box(D)),
        ReleaseDraw(Y, describe_noisy_columns(D, 0.1)),
    )
    auditor = Auditor(truth, [draw], POLICY, b"seed", past=at_once)
    (plain,), (compared,) = auditor.play(RecordLinkage()), auditor.play(ReleaseDifferencing())
    for name, answer in plain.candidates.items():
        np.testing.assert_array_equal(compared.candidates[name], answer)
    assert "left" not in compared.scenarios


def test_ties_do_not_link_beyond_chance():
    found = scores(np.zeros((N, D)), describe_noisy_columns(D, 0.1), np.arange(N) // 4)
    # Four in a batch; the luckiest of several candidates is told.
    assert 0.2 < rate(found) < 0.45


@pytest.mark.parametrize(("gone", "expected"), [(1, 1.0), (4, 0.25), (500, 1 / N)])
def test_who_left_is_among_the_rows_that_are_gone(gone: int, expected: float):
    noise = np.random.default_rng(2).standard_normal((N, D))
    found = scores(noise, SECRET, np.zeros(N, dtype=np.int64), gone)
    score = found["release_differencing.left.rate"]
    assert score.low - 1e-9 <= expected <= score.high
    assert "who left" in score.sentence


def test_nobody_left():
    found = scores(X, describe_noisy_columns(D, 0.1), np.zeros(N, dtype=np.int64), 0)
    assert not any(".left." in name for name in found)


def test_labels_rule_out_rows_of_the_batch():
    view = make_view(
        np.zeros((4, D)),
        label=np.array([0, 1, 0, 1], dtype=np.int32),
        public=SECRET,
        schema=unit_box(D),
        targets=make_records(X[:3], label=np.array([0, 1, 1], dtype=np.int32)),
        arrival_batches=Batches(np.array([1, 1, 2, 2]), np.array([2, 1, 3])),
    )
    found = ReleaseDifferencing().attack(view, np.random.default_rng(0))
    np.testing.assert_array_equal(found.candidates["blind"], [2, 1, -1])
    with pytest.raises(NotApplicable, match=r"release_differencing needs .*record_id"):
        ReleaseDifferencing().attack(replace(view, arrival_batches=None), np.random.default_rng(0))
