from __future__ import annotations

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.two_tables.comparison import compare_tables
from ppdm_core.two_tables.order_certainty import is_order_certain
from ppdm_core.two_tables.row_order import (
    find_revealed_orders,
    find_sorted_columns,
    has_position_trend,
)
from ppdm_core.two_tables.tables import Table, as_table

N = 300


def draw_table(rng: np.random.Generator) -> Floats:
    return rng.gamma(2.0, size=(N, 4)) + rng.gamma(1.0, size=(N, 1))


def make_table(X: Floats, name: str = "table") -> Table:
    return as_table(name, {f"x{j}": x for j, x in enumerate(X.T)})


def list_orders(X: Floats, Y: Floats) -> list[str]:
    return list(find_revealed_orders(make_table(X), make_table(Y), None))


def add_noise(X: Floats, rng: np.random.Generator) -> Floats:
    return X + rng.normal(0.0, 3.0, X.shape)


def test_find_sorted_columns_sorted_table_named() -> None:
    X = draw_table(np.random.default_rng(1))
    X = X[np.argsort(X[:, 2])]
    assert "x2" in find_sorted_columns(make_table(X), None)
    assert find_sorted_columns(make_table(np.random.default_rng(2).permutation(X)), None) == []


def test_find_revealed_orders_rows_sorted_by_a_secret_column_found() -> None:
    rng = np.random.default_rng(3)
    X = draw_table(rng)
    Y = add_noise(X[np.argsort(X[:, 1])], rng)
    assert "'x1'" in list_orders(X, Y)
    assert "'x1'" in list_orders(X, Y[::-1])


def test_find_revealed_orders_rows_sorted_by_length_found() -> None:
    rng = np.random.default_rng(4)
    X = draw_table(rng)
    Y = add_noise(X[np.argsort(np.linalg.norm(X, axis=1))], rng)
    assert "the length of a record" in list_orders(X, Y)


def test_find_revealed_orders_random_order_nothing_found() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = draw_table(rng)
        assert list_orders(X, add_noise(X, rng)) == []


def test_find_revealed_orders_release_sorted_by_itself_nothing_found() -> None:
    rng = np.random.default_rng(5)
    X = draw_table(rng)
    Y = draw_table(rng)  # other persons of the same population
    assert list_orders(X, Y[np.argsort(Y[:, 0])]) == []


def test_compare_tables_sorted_original_doubt_with_remedy() -> None:
    rng = np.random.default_rng(6)
    X = draw_table(rng)
    X = X[np.argsort(X[:, 0])]
    compared = compare_tables(make_table(X), make_table(add_noise(X, rng)))
    assert compared.leaks == ()
    assert "Shuffle the rows" in compared.doubts[0]


def test_compare_tables_rows_in_a_secret_order_leak() -> None:
    rng = np.random.default_rng(7)
    X = draw_table(rng)
    Y = add_noise(X[np.argsort(X[:, 0])], rng)
    compared = compare_tables(make_table(X), make_table(Y), aligned=False)
    assert "sorted by 'x0'" in compared.leaks[0]


def test_find_revealed_orders_rows_from_both_ends_or_in_piles_found() -> None:
    rng = np.random.default_rng(8)
    X = draw_table(rng)
    order = np.argsort(X[:, 1])
    ends = np.column_stack([order[: N // 2], order[::-1][: N // 2]]).ravel()
    piles = np.concatenate([order[k::4] for k in range(4)])
    for arranged in (ends, piles):
        assert "'x1'" in list_orders(X, X[arranged] + rng.normal(0.0, 1.5, X.shape))


def test_has_position_trend_table_along_a_tour_noticed() -> None:
    rng = np.random.default_rng(9)
    X = draw_table(rng)
    tour, left = [0], set(range(1, N))
    while left:
        tour.append(min(left, key=lambda i: float(np.linalg.norm(X[i] - X[tour[-1]]))))
        left.remove(tour[-1])
    assert has_position_trend(make_table(X[tour]), None)
    assert not has_position_trend(make_table(X[np.argsort(X[:, 0])]), None)  # by its own column


def test_has_position_trend_random_order_never() -> None:
    for seed in range(50):
        assert not has_position_trend(make_table(draw_table(np.random.default_rng(seed))), None)


def test_has_position_trend_fast_waves_noticed() -> None:
    rng = np.random.default_rng(10)
    X = draw_table(rng)
    order = np.argsort(X.sum(axis=1))
    wave = np.argsort(np.argsort(np.sin(np.arange(N) * 1.1)))  # 52 waves: more than are compared
    assert has_position_trend(make_table(X[order[wave]]), None)


def test_compare_tables_unaligned_rows_with_strong_noise_order_uncertain() -> None:
    rng = np.random.default_rng(11)
    X = draw_table(rng)
    Y = rng.permutation(X + 3 * np.ptp(X, axis=0) * rng.standard_normal(X.shape))

    def list_doubts(Y: Floats, aligned: bool) -> tuple[str, ...]:
        return compare_tables(make_table(X), make_table(Y), aligned=aligned).doubts

    assert any("Sort the rows by a released column" in each for each in list_doubts(Y, False))
    assert not list_doubts(Y, True)
    assert not list_doubts(Y[np.argsort(Y[:, 1])], False)
    assert not list_doubts(rng.permutation(X + rng.normal(0, 0.5, X.shape)), False)


def test_is_order_certain_sorted_by_a_tied_column_uncertain() -> None:
    rng = np.random.default_rng(12)
    X = draw_table(rng)
    Y = X + 3 * np.ptp(X, axis=0) * rng.standard_normal(X.shape)
    Y[:, 0] = np.sort(np.round(Y[:, 0] / 50) * 50)
    assert not is_order_certain(make_table(X), make_table(Y), None)


def add_categories(X: Floats, rng: np.random.Generator) -> Floats:
    """Append indicators of 25 categories, of which some are rare."""
    category = rng.choice(25, len(X), p=rng.dirichlet(np.ones(25)))
    indicators = category[:, None] == np.arange(25)
    return np.column_stack([X, indicators[:, indicators.any(axis=0)]])


def test_find_revealed_orders_independent_rare_categories_nothing_found() -> None:
    """Two rare values at the same place are a coincidence, not an order."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, Y = (add_categories(draw_table(rng), rng) for _ in range(2))
        assert list_orders(X, Y) == []


def test_find_revealed_orders_rare_categories_secret_order_found() -> None:
    rng = np.random.default_rng(5)
    X = add_categories(draw_table(rng), rng)
    Y = X[np.argsort(X[:, 1])]
    Y[:, :4] = add_noise(Y[:, :4], rng)
    assert "'x1'" in list_orders(X, Y)


def test_find_sorted_columns_one_rare_value_at_the_end_not_sorted() -> None:
    X = draw_table(np.random.default_rng(6))
    X[:, 0] = np.arange(N) == N - 1
    assert find_sorted_columns(make_table(X), None) == []
