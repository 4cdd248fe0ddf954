from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.auditor import Auditor, count_group
from ppdm_core.audit.draws import ReleaseDraw
from ppdm_core.audit.runner import choose_audits, list_audits
from ppdm_core.audit.scores import Figures, compute_interval
from ppdm_core.metrics import METRICS
from ppdm_core.model.attacker import Estimate
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import Limit
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.score import Score
from ppdm_core.numerics.mean_limits import mean_interval
from ppdm_core.numerics.random_orthogonal import random_orthogonal
from tests.support.audit_cases import (
    COPY,
    FEW,
    LAPLACE,
    D,
    N,
    Spy,
    draw_noisy,
    make_auditor,
    make_policy,
    make_truth,
    run_all,
)


def test_record_linkage_constant_release_scores_baseline():
    Y = np.full((N, D), 0.25)
    for seed in (b"a", b"b", b"c"):
        rate = make_auditor(Y, Y, Y, seed=seed).run("record_linkage")[0]
        # There are two labels, so that a random row of the record's label is right twice as often.
        assert rate.baseline == pytest.approx(2 / N, rel=0.1)
        assert rate.low <= rate.baseline <= rate.high
        # The worst of a dozen blind candidates, over about 150 trials.
        assert rate.value <= 5 / N


def test_auditor_copy_broken_completely():
    found = run_all(make_auditor(make_truth().X, make_truth().X))
    assert found["record_linkage.rate"].value == 1.0
    assert found["known_pairs.breach_rate"].value == 1.0
    assert found["known_pairs.relative_error"].value == pytest.approx(0.0, abs=1e-9)
    assert found["distance_loss"].value == 0.0
    assert found["knn_accuracy"].value == found["knn_accuracy"].original


def test_auditor_independent_noise_scores_baseline():
    Y = np.random.default_rng(4).random((3, 300, D))
    found = run_all(make_auditor(*Y, known_records=60))
    for name in ("record_linkage.rate", "known_pairs.breach_rate"):
        # The worst of several blind candidates is a little above a blind one.
        assert found[name].low - 0.01 <= found[name].baseline <= found[name].high + 0.01, name


def test_auditor_known_records_not_scored():
    # Half of the records are known, and an attack repeats what it knows.
    Y = np.random.default_rng(4).random((N, D))
    (breach,) = (
        score
        for score in make_auditor(Y, known_records=40).run("known_pairs")
        if score.name == "known_pairs.breach_rate"
    )
    assert breach.n == N - 40 - 8
    assert breach.value < 0.1


def test_auditor_intervals_contain_values():
    found = run_all(make_auditor(draw_noisy(1), draw_noisy(2), draw_noisy(3), public=LAPLACE))
    assert set(found) == {
        *(f"{a}.{m}" for a in ("transform_inverse", "shrinkage", "known_pairs")
          for m in METRICS if METRICS[m].goal == "reconstruct"),
        "record_linkage.rate",
        "record_linkage.surest.rate",
        "record_linkage.few.rate",
        "record_linkage.partial.rate",
        "knn_accuracy",
        "knn_accuracy.deterioration",
        "distance_loss",
    }  # fmt: skip
    for name, score in found.items():
        assert score.low <= score.value <= score.high, name
        assert score.low < score.high, name
        assert np.isfinite([score.low, score.high, score.baseline, score.worst]).all(), name
        low, high = METRICS[name.split(".")[-1]].bounds
        assert low <= score.value <= high, name
        assert score.sentence.endswith("."), name
        assert "{" not in score.sentence, name


def test_auditor_more_limits_only_the_end_that_breaks_a_limit_wider():
    one, many = (
        run_all(
            make_auditor(
                draw_noisy(1), public=LAPLACE, limits={f"limit {i}": 1.0 for i in range(k)}
            )
        )
        for k in (1, 10)
    )
    for name, score in one.items():
        breaks_low = score.better == "down"
        assert (many[name].high == score.high) or not breaks_low, name
        assert (many[name].low == score.low) or breaks_low, name
        moved = score.low - many[name].low + many[name].high - score.high
        is_at_bound = score.low == 0.0 if breaks_low else score.high >= 1.0
        assert moved > 0 or is_at_bound, name
        assert many[name].value == score.value


@pytest.mark.extended
def test_auditor_same_seed_same_scores():
    draws = draw_noisy(1), draw_noisy(2)
    one, two = (run_all(make_auditor(*draws, public=LAPLACE)) for _ in range(2))
    assert one == two
    other = run_all(make_auditor(*draws, public=LAPLACE, seed=b"t"))
    assert other["known_pairs.breach_rate"] != one["known_pairs.breach_rate"]


@pytest.mark.slow
def test_auditor_reversed_audits_same_scores():
    draws = draw_noisy(1), draw_noisy(2)
    one, two = (make_auditor(*draws, public=LAPLACE) for _ in range(2))
    names = choose_audits(one.policy)
    forth = [one.run_one(name) for name in names]
    back = [two.run_one(name) for name in reversed(names)][::-1]
    assert any(result.value for result in forth)
    assert forth == back


def test_auditor_candidates_worst_chosen_per_metric(monkeypatch):
    class Many(Spy):
        def attack(self, view, rng):
            X_hat = view.Y + rng.normal(0, 0.01, view.Y.shape)  # the release is a copy
            return Estimate({"far": view.Y + 5.0, "near": X_hat, "middling": view.Y + 0.3})

    monkeypatch.setitem(ATTACKS, "spy", Many())
    found = {score.name: score for score in make_auditor(make_truth().X).run("spy")}
    assert found["spy.breach_rate"].candidate == "near"
    assert found["spy.breach_rate"].value > 0.9
    assert found["spy.relative_error"].candidate == "near"
    # A constant shift has no width at all: by this metric it is the worst.
    assert found["spy.interval_privacy"].candidate in ("far", "middling")
    assert "20 records" in found["spy.breach_rate"].sentence


def test_auditor_links_worst_candidate_chosen(monkeypatch):
    class Linker(Spy):
        def attack(self, view, rng):
            rows = {bytes(y): i for i, y in enumerate(view.Y)}
            right = np.array([rows[bytes(x)] for x in view.targets.X])
            half = np.where(np.arange(len(right)) % 2, right, -1)
            return Estimate({"none": np.full(len(right), -1), "right": right, "half": half})

    monkeypatch.setitem(ATTACKS, "spy", Linker(goal="link"))
    (rate,) = make_auditor(make_truth().X).run("spy")
    assert (rate.candidate, rate.value) == ("right", 1.0)


def test_auditor_candidate_that_also_works_outside_not_chosen(monkeypatch):
    class Guesser(Spy):
        def attack(self, view, rng):
            rows = {bytes(y) for y in view.Y}
            is_in = np.array([bytes(x) in rows for x in view.targets.X])[:, None]
            truth, nothing = view.targets.X, np.full_like(view.targets.X, 9.0)
            most = np.where(np.arange(len(truth))[:, None] % 4, truth, nothing)
            return Estimate({"always": truth, "members": np.where(is_in, most, nothing)})

    monkeypatch.setitem(ATTACKS, "spy", Guesser(goal="infer"))
    truth, half = make_truth(), np.arange(0, N, 2)
    halves = [ReleaseDraw(truth.X[half], COPY, half, members=half)]
    one = Auditor(truth, [ReleaseDraw(truth.X, COPY)], make_policy(), b"s", halves)
    (score,) = one.run("spy")
    assert (score.candidate, score.baseline) == ("members", 0.0)
    assert 0.6 < score.value < 1.0


@pytest.mark.parametrize("chosen", ["highest", "lowest"])
def test_compute_interval_chosen_figure_only_the_tempting_end_wider(chosen):
    values = np.repeat([1.0, 0.0], [20, 50])
    figures = Figures(
        [2 / 7], 70, 0.0, lambda rows: 0.0, 70, partial(mean_interval, values), chosen=chosen
    )
    rng, rate = np.random.default_rng(0), METRICS["rate"]
    low, high = compute_interval(rate, figures, 0.95, 1, rng)
    found = compute_interval(rate, replace(figures, choices=5), 0.95, 1, rng)
    stricter = mean_interval(values, 0.99)
    assert found == ((stricter[0], high) if chosen == "highest" else (low, stricter[1]))


@pytest.mark.slow
def test_auditor_best_of_useless_candidates_interval_covers_guessing(monkeypatch):
    """Twelve candidates link at random: the low end of the luckiest must not be above guessing."""

    class Gambler(Spy):
        def attack(self, view, rng):
            guesses = (rng.integers(0, 2, len(view.targets.X)) for _ in range(12))
            own = np.array([np.flatnonzero((x == view.Y).all(axis=1))[0] for x in view.targets.X])
            return Estimate({f"{k}": np.where(g == 1, own, -1) for k, g in enumerate(guesses)})

    monkeypatch.setitem(ATTACKS, "spy", Gambler(goal="link"))
    lows = [make_auditor(make_truth().X, seed=bytes([k])).run("spy")[0].low for k in range(30)]
    assert np.sum(np.array(lows) > 0.5) <= 3  # 0.025 x 30 are stated


def test_auditor_draws_pooled_and_worst_reported():
    rng = np.random.default_rng(5)
    noise, nearly = rng.random((N, D)), make_truth().X + rng.normal(0, 1e-4, (N, D))
    found = run_all(make_auditor(nearly, noise, noise))
    rate = found["record_linkage.rate"]
    assert rate.worst == 1.0
    assert 1 / 3 <= rate.value < 0.4
    loss = found["distance_loss"]
    assert loss.worst > loss.value > 0


def test_auditor_candidate_of_one_draw_scored_on_that_draw(monkeypatch):
    class Moody(Spy):
        def attack(self, view, rng):
            self.seen.append(view)
            zero = {"a": np.zeros((len(view.Y), D))}
            return Estimate(zero if len(self.seen) == 1 else {**zero, "b": view.Y})

    monkeypatch.setitem(ATTACKS, "spy", Moody())
    found = {s.name: s for s in make_auditor(make_truth().X, make_truth().X).run("spy")}
    assert (found["spy.breach_rate"].candidate, found["spy.breach_rate"].value) == ("b", 1.0)


@pytest.mark.parametrize(
    ("attack", "scenario", "statements", "group"),
    [
        ("singling_out", "", 1, 1),  # all rows of the release are equal
        ("singling_out", "", 51, None),
        ("record_linkage", "", 1, None),
        ("record_linkage", "surest", 50, 50.0),
        ("record_linkage", "few", 10, 10.0),
    ],
)
def test_count_group_small_groups_of_500_persons(attack, scenario, statements, group):
    score = Score("any.rate", "privacy", "down", 0.0, 0.0, 1.0, statements, 0.0, 0.0)
    assert count_group(ATTACKS[attack], scenario, score, 500) == group


def test_auditor_missing_knowledge_not_applicable():
    one = make_auditor(make_truth().X, known_records=0)
    for name in ("transform_inverse", "shrinkage", "known_pairs", "breach_rate"):
        with pytest.raises(NotApplicable):
            one.run(name)
    with pytest.raises(NotApplicable):
        Auditor(make_truth(), (), make_policy(), b"s")


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_auditor_tiny_tables_sound_scores(n):
    found = run_all(make_auditor(draw_noisy(1, n=n), public=LAPLACE))
    for name, score in found.items():
        assert score.low <= score.value <= score.high, name


def test_list_audits_reconstructions_before_attacks_that_use_them():
    names = list_audits()
    assert names[: len(ATTACKS)] == tuple(ATTACKS)
    of_release = {name for name, metric in METRICS.items() if metric.goal == "release"}
    assert set(names[len(ATTACKS) :]) - {"label"} == of_release >= {"knn_accuracy", "distance_loss"}
    goals = [attack.goal for attack in ATTACKS.values()]
    builders = [goals.index(attack.goal) for attack in ATTACKS.values() if uses_others(attack)]
    last = len(goals) - 1 - goals[::-1].index("reconstruct")
    assert builders and min(builders) > last


def uses_others(attack):
    return "reconstructions" in attack.needs


def test_choose_audits_quick_required_and_limited_only():
    quick = make_policy()
    assert set(choose_audits(quick)) == {*FEW, "label", "knn_accuracy", "distance_loss"}
    limited = replace(quick, limits={"linkability.pair_rate": Limit(0.1, "DPO", "why")})
    assert set(choose_audits(limited)) == {*choose_audits(quick), "linkability"}
    assert choose_audits(replace(quick, effort="standard")) == list_audits()


@pytest.mark.extended
@pytest.mark.parametrize("known", [2, 3])
def test_known_pairs_expected_rate_near_measured(known):
    """With fewer known records than columns the computed probability is near the measured rate."""
    X = make_truth(600).X
    rotated = [X @ random_orthogonal(D, np.random.default_rng(seed)).T for seed in range(30)]
    public = PublicParameters("rotation", "rotated", tuple("abcd"), preserves_distances=True)
    one = make_auditor(*rotated, public=public, known_records=known, sample_share=0.0, epsilon=0.3)
    score = {each.name: each for each in one.run("known_pairs")}["known_pairs.breach_rate"]
    assert 0.02 < score.value < 0.98
    assert score.expected == pytest.approx(score.value, abs=0.05)
    assert score.victims is not None and score.victims >= score.value - 0.02
