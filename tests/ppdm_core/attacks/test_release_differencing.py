"""Comparing releases, on tables small enough to say who must be found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.attacks.release_differencing import ReleaseDifferencing
from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import EarlierReleases, OriginalTable, ReleaseDraw
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


def measure_scores(
    Y: np.ndarray, public: PublicParameters, since: np.ndarray, gone: int = 0
) -> dict[str, Score]:
    earlier = EarlierReleases((), np.full_like(Y, np.nan), since, gone)
    truth = OriginalTable(X, LABEL, unit_box(D))
    auditor = Auditor(truth, [ReleaseDraw(Y, public)], POLICY, b"seed", earlier=earlier)
    return {score.name: score for score in auditor.run("release_differencing")}


def read_rate(found: dict[str, Score], scenario: str = "") -> float:
    return found[".".join(filter(None, ("release_differencing", scenario, "rate")))].value


def test_release_differencing_single_arrival_found_blindly():
    noise = np.random.default_rng(2).standard_normal((N, D))
    assert read_rate(measure_scores(noise, SECRET, np.arange(N))) == 1.0


@pytest.mark.parametrize("size", [2, 5, 20])
def test_release_differencing_batch_of_arrivals_found_at_chance_of_batch(size: int):
    noise = np.random.default_rng(2).standard_normal((N, D))
    score = measure_scores(noise, SECRET, np.arange(N) // size)["release_differencing.rate"]
    assert score.low <= 1 / size <= score.high
    assert score.baseline == pytest.approx(1 / N)


def test_release_differencing_values_within_batch_beat_blind_guess():
    Y = X + np.random.default_rng(3).laplace(0.0, 0.3, X.shape)
    alone, together = (
        read_rate(measure_scores(Y, describe_noisy_columns(D, 0.3), since))
        for since in (np.arange(N) // 4, np.zeros(N, dtype=np.int64))
    )
    assert together + 0.2 < alone < 1.0


def test_release_differencing_first_release_same_as_record_linkage():
    Y = X + 0.1 * np.random.default_rng(3).standard_normal((N, D))
    at_once = EarlierReleases((), np.full_like(Y, np.nan), np.zeros(N, dtype=np.int64))
    truth = OriginalTable(X, LABEL, unit_box(D))
    draw = ReleaseDraw(Y, describe_noisy_columns(D, 0.1))
    auditor = Auditor(truth, [draw], POLICY, b"seed", earlier=at_once)
    (plain,) = auditor.run_trials(RecordLinkage())
    (compared,) = auditor.run_trials(ReleaseDifferencing())
    for name, answer in plain.candidates.items():
        np.testing.assert_array_equal(compared.candidates[name], answer)
    assert "left" not in compared.scenarios


def test_release_differencing_tied_rows_no_link_beyond_chance():
    found = measure_scores(np.zeros((N, D)), describe_noisy_columns(D, 0.1), np.arange(N) // 4)
    # Four in a batch; the luckiest of several candidates is reported.
    assert 0.2 < read_rate(found) < 0.45


@pytest.mark.parametrize(("gone", "expected"), [(1, 1.0), (4, 0.25), (500, 1 / N)])
def test_release_differencing_departures_found_among_removed_rows(gone: int, expected: float):
    noise = np.random.default_rng(2).standard_normal((N, D))
    found = measure_scores(noise, SECRET, np.zeros(N, dtype=np.int64), gone)
    score = found["release_differencing.left.rate"]
    assert score.low - 1e-9 <= expected <= score.high
    assert "who left" in score.sentence


def test_release_differencing_no_departures_no_left_scenario():
    found = measure_scores(X, describe_noisy_columns(D, 0.1), np.zeros(N, dtype=np.int64), 0)
    assert not any(".left." in name for name in found)


def test_release_differencing_rows_of_other_label_ruled_out():
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
