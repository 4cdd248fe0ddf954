from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppdm_core.miners import MINERS
from ppdm_core.miners._simplex import maximize_likelihood
from ppdm_core.miners.frequencies import Frequencies, estimate_from_counts, response_matrix
from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput, NotApplicable
from ppdm_core.model.release import PublicParameters, Response
from ppdm_core.model.schema import Categorical
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers.randomized_response import RandomizedResponse, estimate_frequencies
from tests.support.response_tables import ANSWER, COLOUR, KEY, table


def make_response(k: int, gamma: float, name: str = "a") -> Response:
    return Response(Categorical(name, tuple(f"cell {i}" for i in range(k))), gamma)


def test_miners_dict_has_this_miner():
    assert MINERS["frequencies"] is Frequencies


def test_estimate_one_column_by_hand():
    """gamma 3, two cells: 3/4 of responses are true, so 60 % yes is (0.60 - 0.25) / 0.5 = 70 %."""
    found = estimate_from_counts([60, 40], (make_response(2, 3.0),))
    assert found.unbiased == pytest.approx([0.7, 0.3])
    assert found.error == pytest.approx([math.sqrt(0.75 * 0.25 / (100 * 0.25))] * 2)
    assert found.population_error**2 == pytest.approx(found.error**2 + 0.7 * 0.3 / 100)
    assert found.likeliest == pytest.approx([0.7, 0.3])
    assert found.goodness().statistic == pytest.approx(0.0, abs=1e-12)
    assert found.goodness().p_value == 1.0


def test_estimate_too_few_yes_by_hand():
    """No frequency explains 10 % yes: 25 % are yes by chance alone."""
    found = estimate_from_counts([10, 90], (make_response(2, 3.0),))
    assert found.unbiased == pytest.approx([-0.3, 1.3])
    assert found.likeliest == pytest.approx([0.0, 1.0], abs=1e-9)
    good = found.goodness()
    statistic = 2 * (10 * math.log(0.10 / 0.25) + 90 * math.log(0.90 / 0.75))
    assert good.statistic == pytest.approx(statistic)
    assert good.degrees == 1
    assert good.p_value == pytest.approx(math.erfc(math.sqrt(statistic / 2)))


def test_estimate_two_columns_by_hand():
    """True shares 50, 10 / 20, 20 %. Responses by lines: 42.5, 12.5 / 27.5, 17.5; then by columns.

    In the estimate of the first cell, responses have the weights 9/4, -3/4, -3/4 and 1/4.
    """
    both = (make_response(2, 3.0), make_response(2, 3.0, "b"))
    found = estimate_from_counts([[35, 20], [25, 20]], both)
    assert found.expect_responses(np.array([[0.5, 0.1], [0.2, 0.2]])) * 100 == pytest.approx(
        found.counts
    )
    assert found.unbiased == pytest.approx(np.array([[0.5, 0.1], [0.2, 0.2]]))
    squares = 0.35 * 81 / 16 + 0.45 * 9 / 16 + 0.20 * 1 / 16
    assert found.error[0, 0] == pytest.approx(math.sqrt((squares - 0.5) / 100))
    assert found.population_error[0, 0] == pytest.approx(math.sqrt((squares - 0.25) / 100))
    # Lines 55, 45 and columns 60, 40: expected 33, 22 / 27, 18, each off by 2.
    independence = found.independence()
    assert independence.statistic == pytest.approx(4 / 33 + 4 / 22 + 4 / 27 + 4 / 18)
    assert independence.degrees == 1
    even = found.against(np.full((2, 2), 0.25))
    assert even.statistic == pytest.approx((100 + 25 + 0 + 25) / 25)
    assert even.degrees == 3


@settings(max_examples=25)
@given(gamma=st.floats(1.1, 50), k=st.integers(2, 9), seed=st.integers(0, 2**32 - 1))
def test_estimate_one_column_equals_published_estimator(gamma: float, k: int, seed: int):
    counts = np.random.default_rng(seed).integers(0, 50, k) + (np.arange(k) == 0)
    frequency, variance = estimate_frequencies(counts, gamma, k)
    found = estimate_from_counts(counts, (make_response(k, gamma),))
    assert np.allclose(found.unbiased, frequency, atol=1e-9)
    assert np.allclose(found.error**2, variance, rtol=1e-6)


def solve_one_column(share: Floats, gamma: float) -> Floats:
    """Return the exact maximum-likelihood frequencies of one column.

    Cells become 0 in the order of their counts; the shares of the others stay in proportion.
    """
    k = len(share)
    p, q = gamma / (gamma + k - 1), 1 / (gamma + k - 1)
    for left in range(k, 0, -1):
        used = np.argsort(-share, kind="stable")[:left]
        answers = share[used] / share[used].sum() * (1 - (k - left) * q)
        if answers.min() >= q:
            break
    f = np.zeros(k)
    f[used] = (answers - q) / (p - q)
    return f


@settings(max_examples=25)
@given(gamma=st.floats(1.05, 20), k=st.integers(2, 12), seed=st.integers(0, 2**32 - 1))
def test_likeliest_one_column_equals_exact_solution(gamma: float, k: int, seed: int):
    counts = np.random.default_rng(seed).multinomial(200, np.full(k, 1 / k))
    found = estimate_from_counts(counts, (make_response(k, gamma),)).likeliest
    assert np.allclose(found, solve_one_column(counts / 200, gamma), atol=1e-4)
    assert found.min() >= 0 and found.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(3))
def test_likeliest_two_columns_equals_em(seed: int):
    rng = np.random.default_rng(seed)
    both = (make_response(3, 4.0), make_response(4, 6.0, "b"))
    counts = rng.multinomial(300, rng.dirichlet(np.full(12, 0.3))).reshape(3, 4)
    found = estimate_from_counts(counts, both)
    assert found.unbiased.min() < 0
    odds = np.kron(response_matrix(both[0]), response_matrix(both[1]))
    f = np.full(12, 1 / 12)
    for _ in range(5000):
        f *= odds @ (found.share.ravel() / (odds.T @ f))
    assert np.allclose(found.likeliest.ravel(), f, atol=1e-4)
    ln = [counts.ravel() @ np.log(odds.T @ each) for each in (found.likeliest.ravel(), f)]
    assert ln[0] >= ln[1] - 300 * 2e-11  # it stops within 1e-11 for each response


def test_maximize_likelihood_many_cells_converges():
    rng = np.random.default_rng(0)
    odds = np.kron(response_matrix(make_response(9, 1.3)), response_matrix(make_response(11, 1.2)))
    share = rng.multinomial(1000, odds.T @ rng.dirichlet(np.full(99, 0.2))) / 1000
    f = maximize_likelihood(share, odds)
    gain = odds @ (share / (odds.T @ f))
    assert f.min() >= 0 and f.sum() == pytest.approx(1.0)
    assert gain.max() <= 1 + 1e-9  # no other frequencies are more likely


def draw_counts(
    rng: np.random.Generator, truth: Floats, both: tuple[Response, ...], n: int
) -> Floats:
    """Draw n records, and return the counts of their independent responses."""
    a, b = np.unravel_index(rng.choice(truth.size, n, p=truth.ravel()), truth.shape)
    answers = [randomize(rng, each, r) for each, r in zip((a, b), both, strict=True)]
    counts = np.zeros(truth.shape)
    np.add.at(counts, tuple(answers), 1)
    return counts


def randomize(rng: np.random.Generator, true: Any, response: Response) -> Any:
    k = response.column.k
    other = (true + rng.integers(1, k, len(true))) % k
    return np.where(rng.random(len(true)) < response.keep_probability, true, other)


TRUTH = np.array([[0.30, 0.10, 0.05], [0.05, 0.10, 0.40]])
BOTH = (make_response(2, 4.0), make_response(3, 6.0, "b"))


def standardize_errors(draws: int, n: int) -> Floats:
    """Return standardised errors, (draws, 2, 6): for the records, and for the population."""
    rng = np.random.default_rng(1)
    a, b = np.unravel_index(rng.choice(6, n, p=TRUTH.ravel()), TRUTH.shape)
    records = np.zeros(TRUTH.shape)
    np.add.at(records, (a, b), 1 / n)
    errors = []
    for _ in range(draws):
        counts = np.zeros(TRUTH.shape)
        np.add.at(counts, (randomize(rng, a, BOTH[0]), randomize(rng, b, BOTH[1])), 1)
        same = estimate_from_counts(counts, BOTH)
        fresh = estimate_from_counts(draw_counts(rng, TRUTH, BOTH, n), BOTH)
        among = (same.unbiased - records) / same.error
        population = (fresh.unbiased - TRUTH) / fresh.population_error
        errors.append([among.ravel(), population.ravel()])
    return np.array(errors)


def check_coverage(errors: Floats, spread: float) -> None:
    draws = len(errors)
    assert np.all(np.abs(errors.mean(axis=0)) < 4 / math.sqrt(draws))
    assert np.all(np.abs(errors.std(axis=0) - 1) < spread)
    inside = np.mean(np.abs(errors) < 1.96, axis=0)
    assert np.all(np.abs(inside - 0.95) < 4 * math.sqrt(0.95 * 0.05 / draws) + 0.005)


def test_errors_few_draws_cover_at_level():
    check_coverage(standardize_errors(300, 1000), 0.2)


@pytest.mark.slow
def test_errors_many_draws_cover_at_level():
    check_coverage(standardize_errors(8000, 2000), 0.04)


def test_p_values_true_hypotheses_reject_at_level():
    rng, draws = np.random.default_rng(2), 300
    independent = np.outer(TRUTH.sum(axis=1), TRUTH.sum(axis=0))
    alarms = np.zeros(3)
    for _ in range(draws):
        found = estimate_from_counts(draw_counts(rng, independent, BOTH, 800), BOTH)
        tests = found.against(independent), found.independence(), found.goodness()
        alarms += [test.p_value < 0.05 for test in tests]
    rates = alarms / draws
    assert np.all(np.abs(rates[:2] - 0.05) < 4 * math.sqrt(0.05 * 0.95 / draws))
    assert rates[2] < 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)


def test_p_values_false_hypotheses_reject():
    counts = draw_counts(np.random.default_rng(3), TRUTH, BOTH, 3000)
    found = estimate_from_counts(counts, BOTH)
    assert found.independence().p_value < 1e-6
    assert found.against(np.full((2, 3), 1 / 6)).p_value < 1e-6
    assert found.goodness().p_value > 0.01
    other = (make_response(2, 1.3), make_response(3, 1.3, "b"))  # the settings of another release
    assert estimate_from_counts(counts, other).goodness().p_value < 1e-6


def test_error_few_records_above_zero():
    found = estimate_from_counts(
        [[0, 0], [0, 3]], (make_response(2, 50.0), make_response(2, 50.0, "b"))
    )
    assert found.error.min() > 0


def test_estimate_released_strings_counted():
    rng = np.random.default_rng(0)
    truth = np.stack([rng.integers(0, 3, 4000), rng.integers(-1, 2, 4000)], axis=1)
    truth[:, 1] = np.where(truth[:, 0] == 0, 1, truth[:, 1])
    made = RandomizedResponse(gamma={"attribute": 6.0}).sanitize(
        table(truth, COLOUR, ANSWER), Noise(KEY), {}
    )
    C = np.concatenate([block.C for block in made.rows.blocks()])
    words = {
        "answer": [(*ANSWER.categories, None)[code] for code in C[:, 1]],
        "colour": [COLOUR.categories[code] for code in C[:, 0]],
    }
    found = Frequencies.from_public(made.public).estimate(words)
    assert found.cells == (("no", "yes", None), ("red", "green", "blue"))
    assert found.n == 4000
    true = np.zeros((3, 3))
    np.add.at(true, (truth[:, 1], truth[:, 0]), 1 / 4000)  # a missing one, -1, comes last
    assert np.all(np.abs(found.unbiased - true) < 4 * found.error)
    words["answer"] = [math.nan if word is None else word for word in words["answer"]]
    again = Frequencies.from_public(made.public).estimate(words)
    assert np.array_equal(again.counts, found.counts)


def test_estimate_unpublished_cell_bad_input():
    miner = Frequencies((Response(COLOUR, 3.0), Response(ANSWER, 3.0)))
    with pytest.raises(BadInput, match="Column 'colour' holds a cell that is not one") as caught:
        miner.estimate({"colour": ["red", "purple"]})
    assert "purple" not in str(caught.value)
    with pytest.raises(BadInput, match="Column 'colour' holds a cell that is not one"):
        miner.estimate({"colour": ["red", None]})
    with pytest.raises(BadInput, match="Column 'size' holds no randomized responses"):
        miner.estimate({"size": ["red"]})
    with pytest.raises(BadInput, match="differ in length"):
        miner.estimate({"colour": ["red"], "answer": ["no", "yes"]})


@pytest.mark.parametrize(
    ("counts", "gamma"), [([1, 2, 3], 3.0), ([0, 0], 3.0), ([-1, 2], 3.0), ([1, 2], 1.0)]
)
def test_estimate_from_counts_bad_counts_bad_input(counts: list[int], gamma: float):
    with pytest.raises(BadInput, match="a count for each combination of cells"):
        estimate_from_counts(counts, (make_response(2, gamma),))


def test_estimate_other_bad_input_named():
    with pytest.raises(BadInput, match="1,600 combinations"):
        estimate_from_counts(
            np.ones((40, 40)), (make_response(40, 3.0), make_response(40, 3.0, "b"))
        )
    with pytest.raises(BadInput, match="needs two columns"):
        estimate_from_counts([1, 2], (make_response(2, 3.0),)).independence()
    with pytest.raises(BadInput, match="one for each cell"):
        estimate_from_counts([1, 2], (make_response(2, 3.0),)).against([0.7, 0.7])
    with pytest.raises(BadInput, match="a count for each"):
        Frequencies((make_response(2, 3.0),)).estimate({})
    with pytest.raises(NotApplicable, match="no randomized responses"):
        Frequencies.from_public(
            PublicParameters(method="additive_noise", space="original", columns=("a",))
        )
