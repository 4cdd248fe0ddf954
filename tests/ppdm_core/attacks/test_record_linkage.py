from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks import _assignment as _linking
from ppdm_core.attacks.record_linkage import RecordLinkage
from ppdm_core.model.attacker import AttackerView, KnownRows, RecordSet
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters, Response
from ppdm_core.model.schema import Categorical, Numeric, Schema
from ppdm_core.numerics import distances
from ppdm_core.numerics.neighbours import find_nearest_rows, find_smallest
from tests.support.views import make_records, make_view

RNG = np.random.default_rng(0)  # the attack draws nothing


def make_linkage_view(Y, targets, **fields) -> AttackerView:
    return make_view(Y, d=targets.shape[1], targets=make_records(targets), **fields)


def run_attack(view: AttackerView) -> dict[str, np.ndarray]:
    return dict(RecordLinkage().attack(view, RNG).candidates)


FORMS = ("nearest:absolute", "nearest:rearranged", "nearest:direction")


def test_record_linkage_identity_release_links_all():
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 1, (80, 3))
    shuffle = rng.permutation(80)
    got = run_attack(make_linkage_view(X[shuffle], X))
    assert set(got) == {"nearest:released", "one_to_one:released", "nearest:weighted", *FORMS}
    for link in got.values():
        np.testing.assert_array_equal(shuffle[link], np.arange(80))


@pytest.mark.slow
def test_record_linkage_constant_release_links_at_chance():
    rng = np.random.default_rng(2)
    n, X = 20, rng.uniform(0, 1, (20, 2))
    public = PublicParameters(
        "flat", "components", (), np.zeros(2), np.eye(2), "laplace", np.ones(2)
    )
    flat = np.full((n, 2), 0.5)
    rates: dict[str, list[float]] = {}
    for _ in range(300):
        shuffle = rng.permutation(n)  # row r belongs to record shuffle[r]
        view = make_linkage_view(flat, X, public=public, reconstructions={"flat": flat})
        for name, link in run_attack(view).items():
            rates.setdefault(name, []).append(np.mean(shuffle[link] == np.arange(n)))
    assert len(rates) == 10
    for name, values in rates.items():
        spread = np.std(values) / np.sqrt(300) + 1e-12
        assert abs(np.mean(values) - 1 / n) < 4 * spread, name


def test_record_linkage_shifted_release_one_to_one_beats_nearest():
    targets = np.array([[0.0], [1.0], [2.0], [3.0]])
    got = run_attack(make_linkage_view(targets + 0.9, targets))
    assert got["nearest:released"].tolist() == [0, 0, 1, 2]
    assert got["one_to_one:released"].tolist() == [0, 1, 2, 3]


def test_record_linkage_more_targets_than_rows_some_unlinked():
    got = run_attack(make_linkage_view(np.array([[0.0], [5.0]]), np.array([[0.1], [9.0], [4.9]])))
    assert got["one_to_one:released"].tolist() == [0, -1, 1]
    assert got["nearest:released"].tolist() == [0, 1, 1]


def test_record_linkage_several_reconstructions_one_candidate_each():
    X = np.random.default_rng(3).uniform(0, 1, (30, 2))
    view = make_linkage_view(np.zeros((30, 5)), X, reconstructions={"good": X, "bad": 0 * X})
    view = replace(view, public=PublicParameters("rotation", "rotated", ()))
    got = run_attack(view)
    assert set(got) == {
        f"{way}:{name}" for way in ("nearest", "one_to_one") for name in view.reconstructions
    }
    np.testing.assert_array_equal(got["nearest:good"], np.arange(30))
    assert (got["nearest:bad"] == 0).all()


@pytest.mark.parametrize("space", ["components", "original"])
def test_record_linkage_laplace_noise_likelihood_beats_nearest(space):
    rng = np.random.default_rng(4)
    n, b = 200, np.array([0.02, 0.3, 0.3])
    loadings = np.linalg.qr(rng.standard_normal((4, 4)))[0][:, :3]
    centre = np.full(4, 0.5)
    public = PublicParameters("pca", space, (), centre, loadings, "laplace", b)
    hits = {"nearest:back": 0.0, "likelihood": 0.0, "likelihood_one_to_one": 0.0}
    for _ in range(5):
        X = rng.uniform(0, 1, (n, 4))
        Z = (X - centre) @ loadings + rng.laplace(0.0, b, (n, 3))
        back = centre + Z @ np.linalg.pinv(loadings)
        Y = Z if space == "components" else back
        got = run_attack(make_linkage_view(Y, X, public=public, reconstructions={"back": back}))
        for name in hits:
            hits[name] += np.mean(got[name] == np.arange(n)) / 5
    assert hits["likelihood"] > 1.5 * hits["nearest:back"] > 3 / n
    assert hits["likelihood_one_to_one"] > hits["likelihood"]


def test_record_linkage_hand_worked_table_expected_likelihood_links():
    # Costs |t - z| / b: target (0, 0) is 1/1 + 0 = 1 from row 0 and 0 + 0.5/0.1 = 5 from row 1.
    public = PublicParameters(
        "pca", "components", (), np.zeros(2), np.eye(2), "laplace", np.array([1, 0.1])
    )
    Y = np.array([[1.0, 0.0], [0.0, 0.5]])
    got = run_attack(
        make_linkage_view(Y, np.zeros((1, 2)), public=public, reconstructions={"as_is": Y})
    )
    assert got["likelihood"].tolist() == [0]
    assert got["nearest:as_is"].tolist() == [1]


def test_record_linkage_laplace_likelihood_adds_absolute_differences():
    # From the origin, (1, 1) is at 2 and (1.8, 0) at 1.8; Euclid says 1.4 and 1.8.
    public = PublicParameters(
        "pca", "components", (), np.zeros(2), np.eye(2), "laplace", np.ones(2)
    )
    Y = np.array([[1.0, 1.0], [1.8, 0.0]])
    got = run_attack(
        make_linkage_view(Y, np.zeros((1, 2)), public=public, reconstructions={"as_is": Y})
    )
    assert got["likelihood"].tolist() == got["likelihood_one_to_one"].tolist() == [1]
    assert got["nearest:as_is"].tolist() == [0]


def test_record_linkage_small_blocks_same_links(monkeypatch):
    rng = np.random.default_rng(5)
    X, Y = rng.uniform(0, 1, (50, 3)), rng.uniform(0, 1, (40, 3))
    public = PublicParameters("pca", "original", (), np.zeros(3), np.eye(3), "laplace", np.ones(3))
    whole = run_attack(make_linkage_view(Y, X, public=public))
    monkeypatch.setattr(distances, "BLOCK_BYTES", 7 * 40 * 8)
    assert max(len(D) for _, D in distances.squared_distances(X, Y)) == 7
    cut = run_attack(make_linkage_view(Y, X, public=public))
    for name in whole:
        np.testing.assert_array_equal(whole[name], cut[name])


def test_record_linkage_large_tables_assigned_among_best_rows(monkeypatch):
    rng = np.random.default_rng(6)
    X = rng.uniform(0, 1, (300, 6))
    Y = X + rng.normal(0, 0.15, X.shape)
    exact = run_attack(make_linkage_view(Y, X))["one_to_one:released"]
    monkeypatch.setattr(_linking, "MAX_EXACT_ROWS", 10)
    sparse = run_attack(make_linkage_view(Y, X))["one_to_one:released"]
    answered = sparse[sparse >= 0]
    assert len(np.unique(answered)) == len(answered) > 280
    assert np.mean(sparse == np.arange(300)) > np.mean(exact == np.arange(300)) - 0.05
    # Worked out by hand: row 0 is nearest to two persons, and the second has no other row nearby.
    monkeypatch.setattr(_linking, "_CANDIDATES_PER_PERSON", 1)
    rows = np.vstack([[[0.0]], np.arange(50, 70)[:, None]])
    got = run_attack(make_linkage_view(rows, np.array([[0.1], [0.2]])))
    assert sorted(got["one_to_one:released"].tolist()) == [-1, 0]
    assert got["nearest:released"].tolist() == [0, 0]


def test_record_linkage_rows_of_other_label_ruled_out():
    view = make_linkage_view(np.array([[0.1], [0.5], [0.9]]), np.array([[0.1], [0.1], [0.1]]))
    view = replace(
        view,
        label=np.array([0, 1, 1], dtype=np.int32),
        targets=make_records(np.full((3, 1), 0.1), label=np.array([0, 1, 2], dtype=np.int32)),
    )
    assert run_attack(view)["nearest:released"].tolist() == [0, 1, -1]  # no row has label 2


@pytest.mark.parametrize("law", ["normal", "uniform", "student_t", "logistic", "laplace"])
def test_record_linkage_odds_match_brute_force_posterior(law):
    from scipy import stats

    rng = np.random.default_rng(7)
    n, b = 60, np.array([0.1, 0.3, 0.2])
    X = rng.uniform(0, 1, (n, 3))
    facts = {"nu": 3.0} if law == "student_t" else {}
    public = PublicParameters("noise", "original", (), np.zeros(3), np.eye(3), law, b, facts=facts)
    frozen = {
        "normal": stats.norm(0, b),
        "uniform": stats.uniform(-1.01 * b, 2.02 * b),
        "student_t": stats.t(3, 0, b),
        "logistic": stats.logistic(0, b),
        "laplace": stats.laplace(0, b),
    }[law]
    Y = X + frozen.rvs((n, 3), random_state=8) * (0.98 if law == "uniform" else 1.0)
    found = run_attack(make_linkage_view(Y, X[: n // 2], public=public))
    f = np.exp(frozen.logpdf(Y[None] - X[: n // 2, None]).sum(axis=2))  # (t, n)
    best = f[np.arange(n // 2), found["likelihood"]]
    np.testing.assert_allclose(best, f.max(axis=1), rtol=1e-6)
    plain = stats.multivariate_normal(Y.mean(axis=0), np.cov(Y.T, bias=True)).pdf(Y)
    odds = f / (0.9 * f.mean(axis=0) + 0.1 * plain)
    chosen = odds[np.arange(n // 2), found["odds"]]
    assert np.mean(chosen >= 0.99 * odds.max(axis=1)) > 0.95  # the background shifts it a little


@pytest.mark.parametrize("seed", range(3))
def test_record_linkage_few_targets_odds_beat_likelihood(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(0.5, 0.1, (600, 8))
    public = PublicParameters(
        "noise", "original", (), np.zeros(8), np.eye(8), "laplace", np.full(8, 0.1)
    )
    got = run_attack(make_linkage_view(X + rng.laplace(0, 0.1, X.shape), X[:300], public=public))
    rate = {name: np.mean(link == np.arange(300)) for name, link in got.items()}
    assert rate["odds"] > 1.2 * rate["likelihood"] > 10 / 600


def test_record_linkage_clamped_release_clamps_records():
    # The component of 0.9 comes out as 0.2 at most, and so does the second row, which is its own.
    ranges = np.array([[-0.2, 0.2], [-2.0, 2.0]])
    scales = np.array([0.1, 0.1])
    public = PublicParameters("noise", "components", (), np.zeros(2), np.eye(2), "normal", scales)
    Z = np.array([[0.2, 0.0], [0.19, 0.12], [0.0, 0.12]])
    view = make_linkage_view(Z, np.array([[0.9, 0.12]]), public=public, reconstructions={"back": Z})
    assert run_attack(view)["likelihood"].tolist() == [1]
    narrow = replace(view, public=replace(public, scales=np.array([0.01, 0.1])))
    assert run_attack(narrow)["likelihood"].tolist() == [
        0
    ]  # as if 0.01 more meant 14 scales squared
    narrow = replace(narrow, public=replace(narrow.public, ranges=ranges))
    assert run_attack(narrow)["likelihood"].tolist() == [1]


def make_responses_view(n: int, gamma: float, seed: int) -> tuple[AttackerView, np.ndarray]:
    rng = np.random.default_rng(seed)
    columns = tuple(Categorical(f"c{j}", ("a", "b", "c", "d")) for j in range(8))
    responses = tuple(Response(column, gamma) for column in columns)
    C = rng.integers(0, 4, (n, 8)).astype(np.int32)
    wrong = rng.random((n, 8)) > responses[0].keep_probability
    said = np.where(wrong, (C + rng.integers(1, 4, (n, 8))) % 4, C).astype(np.int32)
    order = rng.permutation(n)
    view = make_view(
        np.zeros((n, 0)),
        public=PublicParameters("randomized_response", "original", (), responses=responses),
        schema=Schema((), columns),
        C=said[order],
        targets=make_records(np.zeros((n, 0)), C),
    )
    return view, np.argsort(order)


def test_record_linkage_categories_alone_links_by_responses():
    view, truth = make_responses_view(200, gamma=200.0, seed=1)
    got = run_attack(view)
    assert set(got) == {"answers", "answers_one_to_one", "odds", "odds_one_to_one"}
    for link in got.values():
        assert np.mean(link == truth) > 0.9
    assert np.mean(run_attack(make_responses_view(200, 1.001, 2)[0])["odds"] == truth) < 0.05


def test_record_linkage_responses_count_by_their_gamma():
    # Row 0 differs in a column of gamma 100, row 1 in two of gamma 3: ln 100 > 2 ln 3.
    columns = tuple(Categorical(name, ("a", "b")) for name in "uvw")
    responses = tuple(map(Response, columns[::-1], (3.0, 3.0, 100.0)))  # in another order
    view = make_view(
        np.zeros((2, 0)),
        public=PublicParameters("randomized_response", "original", (), responses=responses),
        schema=Schema((), columns),
        C=np.array([[0, 0, 1], [1, 1, 0]], dtype=np.int32),
        targets=make_records(np.zeros((1, 0)), np.zeros((1, 3), dtype=np.int32)),
    )
    assert run_attack(view)["answers"].tolist() == [1]


def test_record_linkage_responses_and_numbers_beat_numbers_alone():
    view, truth = make_responses_view(200, gamma=50.0, seed=3)
    rng = np.random.default_rng(4)
    X = rng.uniform(0, 1, (200, 2))
    Y = np.empty_like(X)
    Y[truth] = X + rng.laplace(0, 0.1, X.shape)
    public = replace(
        view.public, centre=np.zeros(2), loadings=np.eye(2), law="laplace", scales=np.full(2, 0.1)
    )
    numeric = tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(2))
    both = replace(
        view,
        Y=Y,
        public=public,
        schema=Schema(numeric, view.schema.categorical),
        targets=RecordSet(X, view.targets.C, view.targets.label),
    )
    alone = replace(both, C=None, public=replace(public, responses=()))
    for name in ("nearest:released", "odds"):
        rates = [np.mean(run_attack(one)[name] == truth) for one in (both, alone)]
        assert rates[0] > 2 * rates[1], name


def test_record_linkage_partial_records_use_their_columns_only():
    rng = np.random.default_rng(9)
    X = rng.uniform(0, 1, (100, 4))
    public = PublicParameters(
        "noise", "original", (), np.zeros(4), np.eye(4), "laplace", np.full(4, 0.01)
    )
    view = make_linkage_view(X + rng.laplace(0, 0.01, X.shape), X, public=public)
    view = replace(view, partial_columns=np.array([1, 3]))
    got = RecordLinkage().attack(view, RNG).scenarios["partial"]
    ways = {"nearest:released", "one_to_one:released", "nearest:weighted"}
    for name in ("filtered", "likelihood", "odds"):
        ways |= {name, f"{name}_one_to_one"}
    assert set(got) == ways
    for name, link in got.items():
        assert np.mean(link == np.arange(100)) > 0.8, name
    garbled = X.copy()
    garbled[:, [0, 2]] = rng.uniform(0, 1, (100, 2))
    other_label = make_records(garbled, label=np.ones(100, dtype=np.int32))
    again = RecordLinkage().attack(replace(view, targets=other_label), RNG).scenarios["partial"]
    for name, link in got.items():
        np.testing.assert_array_equal(link, again[name])


def test_record_linkage_partial_records_mixed_components_filtered():
    rng = np.random.default_rng(10)
    X = 0.5 + 0.1 * rng.standard_normal((150, 4)) @ rng.standard_normal((4, 4))
    loadings = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    scales = np.full(4, 0.01)
    public = PublicParameters("pca", "components", (), np.full(4, 0.5), loadings, "normal", scales)
    Z = (X - 0.5) @ loadings + rng.normal(0, 0.01, X.shape)
    view = make_linkage_view(Z, X, public=public, reconstructions={"back": 0.5 + Z @ loadings.T})
    got = RecordLinkage().attack(replace(view, partial_columns=np.array([0, 1])), RNG)
    partial = got.scenarios["partial"]
    assert "likelihood" not in partial  # every component mixes all columns
    assert np.mean(partial["filtered"] == np.arange(150)) > 0.6


@pytest.mark.parametrize("k", [1, 5])
def test_find_nearest_rows_and_smallest_equal_sorted_distances(monkeypatch, k):
    rng = np.random.default_rng(11)
    A, B = rng.uniform(0, 1, (40, 4)), rng.uniform(0, 1, (2_001, 4))
    D = np.sum((A[:, None] - B[None]) ** 2, axis=2)
    order = np.argsort(D, axis=1)[:, :k]
    place, square = find_nearest_rows(A, B, k)
    np.testing.assert_array_equal(place, order)
    np.testing.assert_allclose(square, np.take_along_axis(D, order, axis=1), rtol=1e-9)
    monkeypatch.setattr(distances, "BLOCK_BYTES", 7 * 2_001 * 8)
    for found in (find_nearest_rows(A, B, k)[0], find_smallest(D, k)[0]):
        np.testing.assert_array_equal(found, order)


def test_record_linkage_without_targets_or_original_columns_not_applicable():
    X = np.ones((3, 2))
    with pytest.raises(NotApplicable, match="full records of persons to look for"):
        run_attack(replace(make_linkage_view(X, X), targets=None))
    with pytest.raises(NotApplicable, match="the original columns or a reconstruction"):
        run_attack(
            replace(make_linkage_view(X, X), public=PublicParameters("rotation", "rotated", ()))
        )


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_record_linkage_one_unperturbed_column_links_all(noise):
    """The other columns say nothing; known pairs, or verbatim values, show which one is good."""
    rng = np.random.default_rng(21)
    X = rng.uniform(0, 1, (120, 8))
    Y = rng.permuted(X, axis=0)
    Y[:, 5] = X[:, 5] + rng.normal(0, noise, len(X)) if noise else X[:, 5]
    view = make_view(
        Y,
        public=PublicParameters("other", "original", tuple("abcdefgh")),
        schema=Schema(tuple(Numeric(name, 0.0, 1.0) for name in "abcdefgh")),
        targets=make_records(X[20:]),
        known=KnownRows(X[:20], np.arange(20)),
    )
    links = RecordLinkage().attack(view, np.random.default_rng(0)).candidates
    found = {name: np.mean(link == np.arange(20, 120)) for name, link in links.items()}
    assert found["nearest:weighted"] > (0.5 if noise else 0.99)
    assert found["nearest:released"] < 0.1
    Y[:, :5], Y[:, 6:] = rng.uniform(0, 1, (120, 5)), rng.uniform(0, 1, (120, 2))
    view = replace(view, Y=Y)
    alone = RecordLinkage().attack(replace(view, known=None), np.random.default_rng(0)).candidates
    is_found = np.mean(alone["nearest:weighted"] == np.arange(20, 120)) > 0.99
    assert is_found == (noise == 0.0)  # without pairs only what is exactly the same is seen
    half = replace(view, known=None, partial_columns=np.array([1, 5]))
    partial = RecordLinkage().attack(half, np.random.default_rng(0)).scenarios["partial"]
    assert (np.mean(partial["nearest:weighted"] == np.arange(20, 120)) > 0.99) == (noise == 0.0)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("nearest:released", lambda Z: Z),
        ("nearest:absolute", lambda Z: -Z),
        ("nearest:rearranged", lambda Z: np.random.default_rng(3).permuted(Z, axis=1)),
        ("nearest:direction", lambda Z: 3.0 * Z),
    ],
)
def test_record_linkage_few_persons_disguised_are_the_surest(name, change):
    """Four of 200 persons are released in a simple disguise, the others as noise."""
    rng = np.random.default_rng(11)
    X, Y = rng.standard_normal((2, 200, 6))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    Y[:4] = change(X[:4])
    found = RecordLinkage().attack(make_linkage_view(Y, X), RNG)
    np.testing.assert_array_equal(found.candidates[name][:4], np.arange(4))
    few = found.scenarios["few"]["few"]
    np.testing.assert_array_equal(few[:4], np.arange(4))
    assert np.sum(few >= 0) == 5
    assert np.sum(found.scenarios["surest"]["surest"] >= 0) == 20


def test_record_linkage_independent_rows_surest_persons_found_by_chance():
    rng = np.random.default_rng(12)
    hits = []
    for _ in range(30):
        X, Y = rng.standard_normal((2, 100, 4))
        surest = RecordLinkage().attack(make_linkage_view(Y, X), RNG).scenarios["surest"]["surest"]
        hits.append(np.mean(surest[surest >= 0] == np.flatnonzero(surest >= 0)))
    assert np.mean(hits) < 0.04  # 0.01 by chance
