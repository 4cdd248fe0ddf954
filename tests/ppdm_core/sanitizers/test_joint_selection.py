"""The choice of coefficients for several parties: equal to brute force, and refused if unproven."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.sanitizers import _joint_selection
from ppdm_core.sanitizers._fuzzy_selection import Programme, choose_pruning
from ppdm_core.sanitizers._joint_selection import (
    Deadline,
    JointProgramme,
    PartyBounds,
    choose_jointly,
    choose_least_loss,
    choose_most_pruned,
)
from tests.ppdm_core.sanitizers.test_fuzzy_selection import draw_shares


def make_programme(shares: list, b: float, p: float, **more: Any) -> JointProgramme:
    parties = [PartyBounds(f"party{t}", *each) for t, each in enumerate(shares)]
    return JointProgramme(parties, b, p, **more)


def choose_by_brute_force(low: np.ndarray, spread: np.ndarray, b: float, p: float) -> tuple:
    """Return (Omega, K, mu_C) of the best proper subset, from the definitions; (parties, m)."""
    m = low.shape[1]
    X = (np.arange(2**m)[:, None] >> np.arange(m)) & 1  # (2^m, m)
    A, D, K = X @ low.T, X @ spread.T, X.sum(axis=1)  # (2^m, parties)
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(b >= A + D, 1.0, np.where(b + p < A, 0.0, (b + p - A) / (p + D)))
    mu_C = each.min(axis=1)
    max_pruned = K[(b + p >= A).all(axis=1)].max()
    min_pruned = K[(b >= A + D).all(axis=1)].max()
    if max_pruned == min_pruned:
        mu_G = (max_pruned <= K).astype(float)
    else:
        mu_G = np.clip((K - min_pruned) / (max_pruned - min_pruned), 0.0, 1.0)
    proper = m > K
    found = zip(np.minimum(mu_G, mu_C)[proper], K[proper], mu_C[proper], strict=True)
    return max((float(level), int(count), float(loss)) for level, count, loss in found)


@pytest.mark.extended
@pytest.mark.parametrize("m", range(2, 11))
@pytest.mark.parametrize("parties", [2, 3])
def test_choose_jointly_is_optimal(m: int, parties: int):
    rng = np.random.default_rng(100 * m + parties)
    for _ in range(4):
        shares = [draw_shares(rng, m) for _ in range(parties)]
        b, p = rng.choice([0.0, 0.1, 0.3]), rng.choice([0.05, 0.2, 0.6])
        low, spread = (np.array(each) for each in zip(*shares, strict=True))
        expected = choose_by_brute_force(low, spread, b, p)
        try:
            found = choose_jointly(make_programme(shares, b, p))
        except BadInput:
            assert expected[2] == 0.0 or expected[1] == 0
            continue
        figures = (found.level, len(found.pruned), found.loss_level)
        assert figures == pytest.approx(expected, abs=1e-12)


@pytest.mark.extended
@pytest.mark.parametrize("m", [3, 5, 8])
def test_choose_jointly_sums_that_meet_the_budget_exactly_is_optimal(m: int):
    rng = np.random.default_rng(m)
    for _ in range(6):
        low, spread = rng.integers(0, 4, (2, m)) / 16, rng.integers(0, 3, (2, m)) / 16
        b, p = rng.integers(0, 6) / 16, rng.integers(1, 4) / 16
        expected = choose_by_brute_force(low, spread, b, p)
        try:
            found = choose_jointly(make_programme([*zip(low, spread, strict=True)], b, p))
        except BadInput:
            assert expected[2] == 0.0 or expected[1] == 0
            continue
        figures = (found.level, len(found.pruned), found.loss_level)
        assert figures == pytest.approx(expected, abs=1e-12)


def test_choose_jointly_one_party_is_the_central_choice():
    low, spread = draw_shares(np.random.default_rng(1), 16)
    found = choose_jointly(make_programme([(low, spread)], 0.1, 0.2))
    central = choose_pruning(Programme(low, spread, 0.1, 0.2))
    assert (found.level, len(found.pruned)) == pytest.approx((central.level, len(central.pruned)))


def test_choose_jointly_infeasible_names_the_party():
    even = (np.full(4, 0.25), np.zeros(4))
    uneven = (np.array([0.01, 0.01, 0.01, 0.97]), np.zeros(4))
    with pytest.raises(BadInput, match="constraint of 'party1' alone excludes each"):
        choose_jointly(make_programme([uneven, even], 0.0, 0.1))


def test_choose_jointly_infeasible_together():
    one = (np.array([0.02, 0.98]), np.zeros(2))
    two = (np.array([0.98, 0.02]), np.zeros(2))
    with pytest.raises(BadInput, match="constraints of 'party0' and 'party1' exclude"):
        choose_jointly(make_programme([one, two], 0.0, 0.1))


@pytest.mark.parametrize(
    ("keeps", "conflict"),
    [
        ([[0, 1], [2], [0, 1, 2], [1, 2]], ["party0", "party1"]),
        ([[0, 1], [1, 2], [0, 2], [0, 1, 2]], ["party0", "party1", "party2"]),
        ([[0, 1, 2], [0, 1], [], [2]], ["party2"]),
        ([[0], [0, 1, 2], [0, 2], [1, 2]], ["party0", "party3"]),
    ],
)
def test_choose_jointly_infeasible_names_the_fewest_parties(
    keeps: list[list[int]], conflict: list[str]
):
    """Each party can prune some of three coefficients; the fourth holds all other energy."""
    shares = []
    for able in keeps:
        low = np.where(np.isin(np.arange(4), able), 0.01, 0.3)
        low[3] = 0.5
        shares.append((low, np.zeros(4)))
    with pytest.raises(BadInput) as found:
        choose_jointly(make_programme(shares, 0.0, 0.1))
    assert [f"party{t}" for t in range(4) if f"'party{t}'" in str(found.value)] == conflict


def test_choose_jointly_not_proven_in_time_refused():
    rng = np.random.default_rng(3)
    shares = [draw_shares(rng, 60) for _ in range(4)]
    with pytest.raises(BadInput, match="No best choice of coefficients was proven"):
        choose_jointly(make_programme(shares, 0.1, 0.2, deadline=Deadline(1e-9)))


@pytest.mark.parametrize(("step", "is_refused"), [(0.01, False), (5.0, True)])
def test_choose_jointly_all_programmes_share_one_deadline(
    monkeypatch: pytest.MonkeyPatch, step: float, is_refused: bool
):
    """By a clock that advances at every look: no programme alone takes long."""
    clock = itertools.count(0.0, step)
    monkeypatch.setattr(_joint_selection, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    rng = np.random.default_rng(3)
    programme = make_programme([draw_shares(rng, 12) for _ in range(3)], 0.1, 0.3)
    if not is_refused:
        assert len(choose_jointly(programme).pruned)
        return
    with pytest.raises(BadInput, match=r"No best choice .* within 60 s \(gap: unknown\)"):
        choose_jointly(programme)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(4))
def test_problem_1_is_optimal(seed: int):
    """Every record is a constraint of its own."""
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(10.0 ** rng.uniform(-2, 1, 7), 40)
    W = np.rint(W * 2**30) / 2**30
    subsets = [[*each] for K in range(7) for each in itertools.combinations(range(7), K)]
    losses = [W[:, each].sum(axis=1).max() for each in subsets]
    for loss in (0.02, 0.1, 0.4):
        most = max(len(each) for each, lost in zip(subsets, losses, strict=True) if lost <= loss)
        found = choose_most_pruned(W, loss)
        assert len(found) == most and W[:, found].sum(axis=1).max(initial=0.0) <= loss
    for K in (1, 3, 6):
        least = min(lost for each, lost in zip(subsets, losses, strict=True) if len(each) == K)
        pruned, worst = choose_least_loss(W, K)
        assert len(pruned) == K and worst == pytest.approx(least, abs=1e-12)
