"""Another party whose columns are related to those of the attacked part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks.related_party import RelatedParty
from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.audit.self_test.leaks import make_persons, release_part, unit_box
from ppdm_core.audit.simulation import RELATED_CORRELATION, AttackTrial, choose_half_participants
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.policy import Attacker

N, D = 240, 6


def make_trial(d: int = D, kept: int = 3) -> AttackTrial:
    """Return a trial on a part of half of the persons, with fewer coefficients than columns."""
    rng = np.random.default_rng(0)
    X, label = make_persons(N, rng, d)
    Y, public = release_part(X, kept)
    members = np.arange(0, N, 2)
    draw = ReleaseDraw(Y[members], public, members, members=members)
    roles = choose_half_participants(N, d, members, Attacker(known_records=40), rng)
    return AttackTrial.create(OriginalTable(X, label, unit_box(d)), draw, roles, rng)


def measure_errors(trial: AttackTrial, view: AttackerView) -> tuple[float, float]:
    """Return the root mean squared error of targets inside the release, and outside it."""
    found = RelatedParty().attack(view, np.random.default_rng(0)).candidates["corrected"]
    roles = trial.participants
    squares = ((found - trial.truth.X[roles.targets]) ** 2).mean(axis=1)
    inside = roles.is_member
    return float(np.sqrt(squares[inside].mean())), float(np.sqrt(squares[~inside].mean()))


def test_view_of_a_part_holds_related_columns_and_the_rows_of_the_targets():
    trial = make_trial()
    view, roles = trial.build_view(0.1, "quick"), trial.participants
    assert view.related is not None
    for columns, records in (
        (view.related.known, roles.known),
        (view.related.targets, roles.targets),
    ):
        X = trial.truth.X[records]
        found = [np.corrcoef(columns[:, j], X[:, j])[0, 1] for j in range(D)]
        assert np.mean(found) == pytest.approx(RELATED_CORRELATION, abs=0.03)
    rows, is_member = view.related.rows, roles.is_member
    assert ((rows >= 0) == is_member).all()
    made_from = trial.draw.records[trial.shuffle]
    assert (made_from[rows[is_member]] == roles.targets[is_member]).all()


def test_view_of_another_release_holds_no_related_columns():
    trial = make_trial()
    draw = replace(trial.draw, public=replace(trial.draw.public, facts={}))
    rng = np.random.default_rng(0)
    other = AttackTrial.create(trial.truth, draw, trial.participants, rng)
    assert other.build_view(0.1, "quick").related is None


def test_related_party_gains_from_the_release_and_from_its_columns():
    """Each alone leaves a larger error than both together."""
    trial = make_trial()
    view = trial.build_view(0.1, "quick")
    assert view.related is not None
    both, columns_alone = measure_errors(trial, view)
    rng = np.random.default_rng(1)
    noise = {name: rng.random(getattr(view.related, name).shape) for name in ("known", "targets")}
    release_alone, nothing = measure_errors(
        trial, replace(view, related=replace(view.related, **noise))
    )
    assert both < 0.8 * min(columns_alone, release_alone)
    assert max(columns_alone, release_alone) < nothing


def test_related_party_column_that_is_the_dropped_direction_gives_the_record():
    """By hand: one coefficient of two columns is released, the other party has what it lacks."""
    trial = make_trial(d=2, kept=1)
    a, b = trial.draw.public.loadings[:, 0]  # type: ignore[index]
    exact = replace(trial, related=trial.truth.X @ np.array([[b], [-a]]))
    inside, outside = measure_errors(exact, exact.build_view(0.1, "quick"))
    assert inside < 0.01 < 0.1 < outside


def test_related_party_does_not_read_the_columns_of_the_targets():
    view = make_trial().build_view(0.1, "quick")
    assert view.targets is not None
    hidden = replace(view, targets=replace(view.targets, X=np.full_like(view.targets.X, np.nan)))
    one, other = (RelatedParty().attack(each, np.random.default_rng(0)) for each in (view, hidden))
    for name, found in one.candidates.items():
        assert np.array_equal(found, other.candidates[name])
