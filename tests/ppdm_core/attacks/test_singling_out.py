from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ppdm_core.attacks.singling_out import SinglingOut
from ppdm_core.metrics.singling_rate import SinglingRate
from ppdm_core.model.attacker import AttackerView
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters, Response
from ppdm_core.model.schema import Categorical, Schema
from tests.support.views import COPY, make_view


def run_attack(view: AttackerView, seed: int = 0) -> dict[str, np.ndarray]:
    return dict(SinglingOut().attack(view, np.random.default_rng(seed)).candidates)


def measure_rates(view: AttackerView, X: np.ndarray) -> dict[str, float]:
    table = np.column_stack([X, np.zeros(len(X))])
    return {name: SinglingRate().measure(s, table) for name, s in run_attack(view).items()}


def test_singling_out_hand_worked_values_expected_intervals():
    # Gaps 0.4 and 0.5: 0.0 reaches down without end, 0.4 by half of the smaller gap.
    view = make_view(np.array([[0.4], [0.0], [0.9]]))
    got = run_attack(view)["univariate"][:, 0, :]
    expected = [[0.65, np.inf], [-np.inf, 0.2], [0.2, 0.6]]
    np.testing.assert_allclose(got, expected)


def test_singling_out_hand_worked_rows_expected_boxes():
    # The nearest other row of row 0 is 0.3 away in the second column, so boxes reach 0.15.
    view = make_view(np.array([[0.1, 0.1], [0.2, 0.4], [0.9, 0.9]]))
    got = run_attack(view)["multivariate"]
    assert got.shape == (3, 3, 2)
    np.testing.assert_allclose(got[0, :2], [[0.55, 1.25], [0.55, 1.25]])  # the loneliest first
    boxes = {tuple(np.round(box[:2].ravel(), 9)) for box in got[1:]}
    assert boxes == {(-0.05, 0.25, -0.05, 0.25), (0.05, 0.35, 0.25, 0.55)}
    assert (got[:, 2] == 0.0).all()  # the label


def test_singling_out_any_release_statements_fit_one_row():
    rng = np.random.default_rng(1)
    Y = rng.uniform(0, 1, (120, 5))
    for name, rate in measure_rates(make_view(Y), Y).items():
        assert rate == 1.0, name
    public = PublicParameters(
        "noise", "original", (), np.zeros(5), np.eye(5), "normal", np.full(5, 1e-4)
    )
    assert measure_rates(make_view(Y, public=public), Y)["multivariate"] > 0.99


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("b", [0.0, 0.01])
def test_singling_out_weak_release_singles_out_members_only(seed, b):
    rng = np.random.default_rng(seed)
    X, others = rng.uniform(0, 1, (150, 6)), rng.uniform(0, 1, (150, 6))
    public = PublicParameters(
        "noise", "original", (), np.zeros(6), np.eye(6), "normal", np.full(6, b)
    )
    Y = X + (rng.normal(0, b, X.shape) if b else 0.0)
    view = make_view(Y, public=public if b else COPY)
    inside, outside = measure_rates(view, X), measure_rates(view, others)
    assert inside["multivariate"] > (0.9 if b else 0.99)
    assert outside["multivariate"] < 0.1


def test_singling_out_overwhelming_noise_no_gain_for_members():
    gains: dict[str, list[float]] = {}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, others = rng.uniform(0, 1, (150, 5)), rng.uniform(0, 1, (150, 5))
        public = PublicParameters(
            "noise", "original", (), np.zeros(5), np.eye(5), "laplace", np.full(5, 2.0)
        )
        view = make_view(X + rng.laplace(0, 2.0, X.shape), public=public)
        outside = measure_rates(view, others)
        for name, rate in measure_rates(view, X).items():
            gains.setdefault(name, []).append(rate - outside[name])
    for name, gain in gains.items():
        assert abs(np.mean(gain)) < 0.06, name


def test_singling_out_rare_categories_make_statements():
    columns = (Categorical("c", ("a", "b", "c")),)
    public = PublicParameters("rr", "original", (), responses=(Response(columns[0], 99.0),))
    view = make_view(
        np.zeros((4, 0)),
        label=np.array([0, 0, 0, 1], dtype=np.int32),
        public=public,
        schema=Schema((), columns),
        C=np.array([[0], [0], [2], [0]], dtype=np.int32),
    )
    got = run_attack(view)
    inf = np.inf
    assert got["univariate"].tolist() == [[[2, 2], [-inf, inf]], [[-inf, inf], [1, 1]]]
    both = sorted(got["multivariate"].tolist())  # rows 2 and 3 are unique in response and label
    assert both == [[[0, 0], [1, 1]], [[2, 2], [0, 0]]]
    assert "half" not in got


def test_singling_out_boxes_include_label():
    label = np.array([0, 1, 1], dtype=np.int32)
    got = run_attack(make_view(np.array([[0.1], [0.2], [0.9]]), label=label))["multivariate"]
    assert got[0, 1].tolist() == [0, 0]  # no other row has this label
    assert np.isinf(got[0, 0]).all()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_singling_out_equal_rows_no_unique_statement(n):
    view = make_view(np.full((n, 3), 0.5))
    for name, made in run_attack(view).items():
        assert len(made) > 0, name
        assert not np.isnan(made).any(), name


def test_singling_out_each_effort_expected_statement_count():
    Y = np.random.default_rng(2).uniform(0, 1, (2_500, 3))
    for effort, most in (("quick", 200), ("standard", 500), ("thorough", 2_000)):
        view = make_view(Y, effort=effort)
        assert {len(made) for made in run_attack(view).values()} == {most}
    one, two = (run_attack(make_view(Y), seed)["multivariate"] for seed in (3, 3))
    np.testing.assert_array_equal(one, two)


def test_singling_out_without_original_columns_not_applicable():
    view = make_view(np.ones((3, 2)), public=PublicParameters("rotation", "rotated", ()))
    with pytest.raises(NotApplicable, match="singling_out needs the original columns"):
        run_attack(view)
    table = {"guess": np.random.default_rng(3).uniform(0, 1, (3, 2))}
    assert run_attack(replace(view, reconstructions=table))["multivariate"].shape == (3, 3, 2)


def release_clear_column(rng, X: np.ndarray, column: int) -> np.ndarray:
    Y = rng.permuted(X, axis=0)
    Y[:, column] = X[:, column]
    return Y


@pytest.mark.parametrize("column", [0, 3])
def test_singling_out_one_unperturbed_column_singles_out_all(column):
    """The other columns say nothing; a few known records show which one does."""
    rng = np.random.default_rng(column)
    X, others = rng.uniform(0, 1, (150, 5)), rng.uniform(0, 1, (150, 5))
    view = make_view(release_clear_column(rng, X, column), records=X[:10])
    assert measure_rates(view, X)["exact"] == 1.0
    assert measure_rates(view, others)["exact"] == 0.0
    nothing = make_view(rng.permuted(others, axis=0), records=X[:10])
    assert measure_rates(nothing, X)["exact"] == 0.0


def test_singling_out_hand_worked_values_expected_exact_statements():
    """0.25 stands there twice; without known records the column with more values is taken."""
    view = make_view(np.array([[0.5, 0.25], [0.5, 0.25], [0.75, 0.375], [0.5, 0.125]]))
    got = np.sort(run_attack(view)["exact"][:, 1, :], axis=0)
    np.testing.assert_allclose(got, [[0.125, 0.125], [0.375, 0.375]], atol=2e-9)
    Y = np.array([[0.5, 0.25], [0.5, 0.375], [0.75, 0.0], [0.625, 0.125]])
    known = make_view(Y, records=np.array([[0.75, 0.9], [0.5, 0.8]]))
    got = run_attack(known)["exact"][:, 0, :]
    np.testing.assert_allclose(got, [[0.625, 0.625]], atol=2e-9)  # 0.75 was known before


def test_singling_out_statements_about_known_records_left_out():
    rng = np.random.default_rng(21)
    Y = rng.uniform(0, 1, (60, 4))
    for name, statements in run_attack(make_view(Y, records=Y[:20])).items():
        held = [
            ((Y[:20] >= each[:4, 0]) & (Y[:20] <= each[:4, 1])).all(axis=1).any()
            for each in statements
        ]
        assert not any(held), name
        assert len(statements) >= 30, name
