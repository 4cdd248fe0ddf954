from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from ppdm_core.attacks._membership_features import MembershipTables, compute_features
from ppdm_core.attacks._noise_likelihood_ratio import compute_noise_odds, pairwise_log_density
from ppdm_core.attacks._row_density import log_normal
from ppdm_core.attacks._shadow_releases import (
    _fit_logistic,
    make_noise_imitator,
    make_resampling_imitator,
    randomize_responses,
)
from ppdm_core.attacks.membership import Membership
from ppdm_core.audit.self_test.leaks import unit_box
from ppdm_core.metrics.auc import Auc
from ppdm_core.metrics.true_positive_rate import TruePositiveRate
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters, Response
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.numerics.kernel_model import KernelSetting
from ppdm_core.numerics.noise_distributions import find_distribution
from tests.support.leaks import describe_kernels, draw_persons
from tests.support.membership_views import make_kernel_case as weak_rows
from tests.support.membership_views import make_member_case as weak
from tests.support.membership_views import make_member_view
from tests.support.views import make_records, make_view

LAWS = {
    "laplace": stats.laplace(),
    "logistic": stats.logistic(),
    "normal": stats.norm(),
    "student_t": stats.t(3),
    "uniform": stats.uniform(-1, 2),
}
PLAIN = ["closest", "closest_ratio", "density_ratio"]
REARRANGED = ("rearranged:ranges", "rearranged:raw", "rearranged:standardised")


def find_law(name: str):
    return find_distribution(name, 3.0 if name == "student_t" else None)


def run_attack(view: AttackerView, seed: int = 0) -> dict[str, np.ndarray]:
    return dict(Membership().attack(view, np.random.default_rng(seed)).candidates)


@pytest.mark.parametrize("name", LAWS)
def test_pairwise_log_density_each_distribution_matches_scipy(name):
    rng = np.random.default_rng(1)
    A, B = rng.normal(0, 0.3, (5, 70)), rng.normal(0, 0.3, (4, 70))  # more than one product
    B[0] = A[0] + 0.9
    A[1, 3] += 7
    expected = LAWS[name].logpdf(A[:, None] - B[None]).sum(axis=2)
    np.testing.assert_allclose(pairwise_log_density(find_law(name), A, B), expected, rtol=1e-5)


@pytest.mark.parametrize("name", LAWS)
def test_make_noise_imitator_each_distribution_matches_scipy(name):
    rng = np.random.default_rng(2)
    Z, source = make_noise_imitator(find_law(name))(
        np.full((20_000, 1), 5.0), np.zeros(20_000), rng
    )
    assert stats.kstest(Z[:, 0] - 5.0, LAWS[name].cdf).pvalue > 1e-6
    assert np.array_equal(source, np.arange(20_000))


def test_make_resampling_imitator_two_classes_spread_of_rule():
    rng = np.random.default_rng(3)
    who = draw_persons(3000, rng, d=2)
    around = KernelSetting.from_public(describe_kernels("corrected", d=2), unit_box(2), who.X)
    wide = replace(around, low=around.low - 9, high=around.high + 9)
    Y, source = make_resampling_imitator(wide)(who.X, who.label, rng)
    for code in (0, 1):
        X, here = who.X[who.label == code], who.label == code
        h = around.rule.compute_from_records(X.std(axis=0, ddof=1), len(X), np.ones(2))
        step = Y[here] - who.X[source[here]]
        assert np.all(np.abs(step) <= h) and step.std(axis=0) == pytest.approx(h / 5**0.5, rel=0.05)
        assert np.all(who.label[source[here]] == code)


def test_compute_noise_odds_hand_worked_rows_expected_odds():
    """One person, one other and two rows: the mean of f / g, with g of the other and a normal."""
    Z, T, R = np.array([[0.0], [3.0]]), np.array([[0.5]]), np.array([[2.0]])
    f, other = 0.5 * np.exp([-0.5, -2.5]), 0.5 * np.exp([-2.0, -1.0])
    g = 0.9 * other + 0.1 * np.exp(log_normal(Z))
    assert compute_noise_odds(find_law("laplace"), Z, T, R) == pytest.approx(
        [np.log(np.mean(f / g))]
    )


COLOUR = Response(Categorical("colour", ("red", "green", "blue")), gamma=8.0)  # 8 of 10 are kept
PLACE = Response(Categorical("place", ("here",), missing=True), gamma=3.0)


def test_compute_noise_odds_categories_count_by_probability():
    """The same by hand, with categories: 0.8 and 0.1 of three, 0.75 and 0.25 of two."""
    Z, T, R = np.array([[0.0], [3.0]]), np.array([[0.5]]), np.array([[2.0]])
    said, own, others = ([[0, -1], [2, 0]], [[0, 0]], [[2, -1]])
    cells = tuple(np.array(codes, dtype=np.int32) for codes in (said, own, others))
    f = 0.5 * np.exp([-0.5, -2.5]) * np.array([0.8 * 0.25, 0.1 * 0.75])
    other = 0.5 * np.exp([-2.0, -1.0]) * np.array([0.1 * 0.75, 0.8 * 0.25])
    g = 0.9 * other + 0.1 * np.exp(log_normal(Z)) * 0.5 * 0.5  # each response is one half of all
    found = compute_noise_odds(find_law("laplace"), Z, T, R, cells, (COLOUR, PLACE))
    assert found == pytest.approx([np.log(np.mean(f / g))])


def test_randomize_responses_many_rows_expected_shares():
    cells = np.tile(np.array([[1, -1]], dtype=np.int32), (20_000, 1))
    given = randomize_responses(cells, (COLOUR, PLACE), np.random.default_rng(0))
    shares = [np.mean(given[:, 0] == code) for code in range(3)]
    assert shares == pytest.approx([0.1, 0.8, 0.1], abs=0.02)
    assert np.mean(given[:, 1] == -1) == pytest.approx(0.75, abs=0.02)
    assert set(given[:, 1].tolist()) == {-1, 0}


def test_membership_released_categories_raise_auc():
    """Numbers alone say little here; six responses that are mostly true say more."""
    rng = np.random.default_rng(1)
    scene = weak(rng, b=0.4)
    columns = tuple(Categorical(f"c{j}", ("a", "b", "c", "d")) for j in range(6))
    responses = tuple(Response(column, gamma=12.0) for column in columns)
    everybody = rng.integers(0, 4, (300, 6)).astype(np.int32)
    reference = replace(scene["reference"], C=rng.integers(0, 4, (150, 6)).astype(np.int32))
    view = replace(
        make_member_view(scene),
        C=randomize_responses(everybody[:150], responses, rng),
        public=replace(scene["public"], responses=responses),
        schema=replace(scene["schema"], categorical=columns[::-1]),
        targets=replace(scene["targets"], C=everybody[scene["order"]][:, ::-1]),
        reference=replace(reference, C=reference.C[:, ::-1]),
    )
    found, plain = run_attack(view), run_attack(replace(view, C=None))
    for name in ("likelihood", "shadow"):
        both = [Auc().measure(each[name], scene["is_member"]) for each in (found, plain)]
        assert both[0] > 0.8 and both[0] > both[1] + 0.1


def test_compute_features_hand_worked_tables_expected_distances():
    ones, none = np.zeros(3, dtype=np.int32), np.zeros((3, 0), dtype=np.int32)
    world = MembershipTables(
        Z=np.array([[0.0], [4.0], [9.0]]),
        label=ones,
        T=np.array([[1.0], [6.0]]),
        target_label=ones[:2],
        R=np.array([[3.0]]),
        reference_label=ones[:1],
        unit=np.array([2.0]),
        responses=none,
        target_codes=none[:2],
        reference_codes=none[:1],
    )
    found = compute_features(world, None)
    assert found["closest"] == pytest.approx([-0.5, -1.0])
    assert found["closest_ratio"] == pytest.approx(np.log([2.0, 1.5]))
    assert found["density_ratio"] == pytest.approx(np.log([2 / 8, 3 / 6]))  # the farthest of three


def test_fit_logistic_known_weights_recovered():
    rng = np.random.default_rng(4)
    A = np.column_stack([rng.standard_normal((20_000, 2)), np.ones(20_000)])
    truth = np.array([1.5, -0.5, 0.25])
    answer = rng.random(20_000) < 1 / (1 + np.exp(-A @ truth))
    assert _fit_logistic(A, answer) == pytest.approx(truth, abs=0.1)
    apart = _fit_logistic(A, A[:, 0] > 0)  # separable: the ridge keeps it finite
    assert np.isfinite(apart).all() and apart[0] > 3


@pytest.mark.parametrize("seed", range(3))
def test_membership_little_noise_finds_members(seed):
    scene = weak(np.random.default_rng(seed))
    found = run_attack(make_member_view(scene))
    assert list(found) == [*PLAIN, "likelihood", "shadow", "found_again"]
    assert TruePositiveRate().measure(found["likelihood"], scene["is_member"]) >= 0.9
    assert TruePositiveRate().measure(found["shadow"], scene["is_member"]) >= 0.9
    assert Auc().measure(found["closest"], scene["is_member"]) >= 0.9


@pytest.mark.parametrize("seed", range(3))
def test_membership_rows_of_other_persons_auc_near_half(seed):
    rng = np.random.default_rng(seed)
    scene = weak(rng) | {"targets": draw_persons(400, rng)}
    for name, score in run_attack(make_member_view(scene)).items():
        assert abs(Auc().measure(score, np.arange(400) < 200) - 0.5) < 0.12, name


def test_membership_noise_likelihood_beats_distance():
    both = []
    for seed in range(3):
        scene = weak(np.random.default_rng(seed), b=0.15)
        found = run_attack(make_member_view(scene))
        both.append(
            [Auc().measure(found[n], scene["is_member"]) for n in ("likelihood", "closest")]
        )
    likelihood, closest = np.mean(both, axis=0)
    assert likelihood > closest + 0.05 and likelihood > 0.65


def test_membership_resampled_rows_has_likelihood():
    scene = weak_rows(np.random.default_rng(5))
    found = run_attack(make_member_view(scene))
    assert list(found) == [*PLAIN, "likelihood", "shadow", *REARRANGED, "found_again"]
    assert TruePositiveRate().measure(found["likelihood"], scene["is_member"]) >= 0.9


def test_membership_without_map_ranks_reconstructions():
    scene = weak(np.random.default_rng(6))
    hidden = PublicParameters("random_rotation", "rotated", scene["public"].columns)
    rng = np.random.default_rng(7)
    good = scene["X"] + rng.normal(0, 0.01, scene["X"].shape)
    view = replace(
        make_member_view(scene),
        public=hidden,
        reconstructions={"zero": good * 0.0, "bad": rng.normal(0, 3, good.shape), "good": good},
    )
    found = run_attack(view)
    assert list(found) == [f"{name}:{rank}" for rank in (1, 2, 3) for name in PLAIN]
    assert Auc().measure(found["closest:1"], scene["is_member"]) > 0.95
    with pytest.raises(NotApplicable, match="membership needs the original columns"):
        run_attack(replace(view, reconstructions={}))


def test_membership_original_columns_without_map_compares_rows():
    scene = weak(np.random.default_rng(8))
    bare = PublicParameters("copy", "original", unit_box(8).names)
    found = run_attack(make_member_view(scene | {"public": bare, "Y": scene["X"]}))
    assert list(found) == [*(f"{name}:1" for name in PLAIN), *REARRANGED, "found_again"]
    assert TruePositiveRate().measure(found["closest:1"], scene["is_member"]) == 1.0


def test_membership_class_without_rows_or_reference_lowest_scores():
    scene = weak(np.random.default_rng(9))
    targets, reference = scene["targets"], scene["reference"]
    label = targets.label.copy()
    label[:2] = 7
    only = np.zeros_like(reference.label)
    view = make_member_view(
        scene
        | {"targets": replace(targets, label=label), "reference": replace(reference, label=only)}
    )
    found = run_attack(view)
    assert all(np.isfinite(score).all() for score in found.values())
    for name in ("closest", "likelihood"):
        assert np.all(found[name][:2] <= found[name].min())


def test_membership_few_reference_records_no_shadow():
    scene = weak(np.random.default_rng(10))
    few = draw_persons(3, np.random.default_rng(11))
    assert list(run_attack(make_member_view(scene | {"reference": few}))) == [
        *PLAIN,
        "likelihood",
        "found_again",
    ]


def test_membership_shuffled_rows_and_same_seed_same_scores():
    view = make_member_view(weak(np.random.default_rng(12)))
    order = np.random.default_rng(13).permutation(len(view.Y))
    moved = run_attack(replace(view, Y=view.Y[order], label=view.label[order]))
    plain, again = run_attack(view), run_attack(view)
    for name, score in plain.items():
        assert np.array_equal(score, again[name])
        np.testing.assert_allclose(moved[name], score, rtol=1e-6, atol=1e-6)


def test_membership_missing_needs_not_applicable():
    view = make_member_view(weak(np.random.default_rng(14)))
    for need in ("targets", "reference"):
        with pytest.raises(NotApplicable, match="The attack membership needs"):
            run_attack(replace(view, **{need: None}))


def test_membership_one_unperturbed_column_finds_members():
    """All others are shuffled; whose value stands there is in the release."""
    rng = np.random.default_rng(5)
    X = rng.uniform(0, 1, (300, 6))
    Y = rng.permuted(X[:100], axis=0)
    Y[:, 2] = X[:100, 2]
    view = make_view(
        Y,
        public=PublicParameters("other", "original", tuple("abcdef")),
        schema=Schema(tuple(Numeric(name, 0.0, 1.0) for name in "abcdef")),
        targets=make_records(X[:200]),
        reference=make_records(X[200:]),
    )
    score = Membership().attack(view, rng).candidates["found_again"]
    # The shuffled columns hold all values, too, so members are found in all six.
    np.testing.assert_array_equal(score, np.repeat([6.0, 0.0], 100))
    Y[:, [0, 1, 3, 4, 5]] += 0.001
    score = Membership().attack(replace(view, Y=Y), rng).candidates["found_again"]
    np.testing.assert_array_equal(score, np.repeat([1.0, 0.0], 100))
