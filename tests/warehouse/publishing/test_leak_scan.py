from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import Refused
from ppdm_core.model.release import Response
from ppdm_core.model.schema import Categorical
from warehouse.publishing.expected_content import ArrayOriginals, ExpectedContent, OriginalRows
from warehouse.publishing.leak_scan import OrderScan, check_bytes
from warehouse.publishing.number_scan import MAX_RARE_RECORDS, max_by_chance
from warehouse.sinks.parquet import write

N = 200
rng = np.random.default_rng(7)
X = rng.random((N, 2))
LABEL = ["a", "b"] * (N // 2)


def save(
    path: Path, Y: Floats, names: tuple[str, ...] = ("x", "y"), label: list[str] = LABEL
) -> Path:
    columns = {name: Y[:, i] for i, name in enumerate(names)}
    table = pa.table({**columns, "label": label})
    pq.write_table(table, path, write_statistics=False, use_dictionary=False, store_schema=False)
    return path


def expected(
    originals: tuple[Floats, ...] = (X,),
    others: tuple[Floats, ...] = (),
    source_order: Floats | None = None,
    categorical: tuple[tuple[Response, np.ndarray], ...] = (),
    **changes: object,
) -> ExpectedContent:
    position = rng.permutation(N).astype(np.float64) if source_order is None else source_order
    codes = np.column_stack([np.zeros((N, 0), np.int32), *(each for _, each in categorical)])
    base = ExpectedContent(
        columns=("x", "y"),
        label="label",
        categories=("a", "b"),
        rows=N,
        atom=2.0**-30,
        draws=2,
        grid=np.full(2, 2.0**-30),
        forbidden=frozenset({"id"}),
        originals=ArrayOriginals(OriginalRows(originals, codes, position), others),
        same_columns=True,
        responses=tuple(response for response, _ in categorical),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def test_check_bytes_correct_release_passes(tmp_path: Path) -> None:
    check_bytes(save(tmp_path / "data.parquet", X + rng.random((N, 2))), expected())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"columns": ("y", "x")}, "its columns are not"),
        ({"forbidden": frozenset({"x"})}, "identifier or an excluded column"),
        ({"rows": N + 1}, "rows that were audited"),
        ({"rows": N - 1}, "rows that were audited"),
        ({"categories": ("a",)}, "does not declare"),
        ({"source_order": np.arange(N, dtype=np.float64)}, "order of the source"),
        ({"source_order": np.arange(N, dtype=np.float64)[::-1]}, "order of the source"),
    ],
)
def test_check_bytes_private_content_refused(
    tmp_path: Path, change: dict[str, object], sentence: str
) -> None:
    path = save(tmp_path / "data.parquet", X + rng.random((N, 2)))
    with pytest.raises(Refused, match=sentence):
        check_bytes(path, expected(**change))


def test_check_bytes_original_row_refused(tmp_path: Path) -> None:
    Y = X + rng.random((N, 2))
    Y[17] = X[3]
    with pytest.raises(Refused, match="rows equal to original"):
        check_bytes(save(tmp_path / "data.parquet", Y), expected())


def test_check_bytes_few_verbatim_records_refused(
    tmp_path: Path,
) -> None:
    """With two coarse columns chance may repeat rows of other records, but hardly its own."""
    coarse, few = expected(grid=None, atom=2e-3), 4
    Y = X + rng.random((N, 2))
    Y[:few] = X[np.arange(few) + 10]  # of other records: as often as by chance
    check_bytes(save(tmp_path / "data.parquet", Y), coarse)
    Y[:few] = X[:few]
    with pytest.raises(Refused, match="records as they are"):
        check_bytes(save(tmp_path / "data.parquet", Y), coarse)


def test_check_bytes_rare_value_in_any_column_refused(tmp_path: Path) -> None:
    Y = X + rng.random((N, 2))
    Y[17, 1] = X[3, 0]  # off the grid: chance cannot make it
    with pytest.raises(Refused, match="rare original values"):
        check_bytes(save(tmp_path / "data.parquet", Y), expected(same_columns=False))


@pytest.mark.parametrize("holders", [3, 4])
def test_check_bytes_value_of_few_records_refused(tmp_path: Path, holders: int) -> None:
    original = X.copy()
    original[:holders, 0] = original[0, 0]
    Y = X + rng.random((N, 2))
    Y[17, 1] = original[0, 0]
    path = save(tmp_path / "data.parquet", Y)
    given = expected(same_columns=False, originals=(original,))
    if holders > MAX_RARE_RECORDS:
        check_bytes(path, given)
        return
    with pytest.raises(Refused, match="rare original values"):
        check_bytes(path, given)


def test_check_bytes_column_of_ids_refused(tmp_path: Path) -> None:
    ids = np.arange(1000.0, 1000.0 + N)
    Y = np.column_stack([X[:, 0] + 1.5, rng.permutation(ids)])
    # On a coarse grid every id can be met by chance, but not so often.
    given = expected(others=(ids,), grid=np.full(2, 0.5), atom=1e-4)
    with pytest.raises(Refused, match="rare original values"):
        check_bytes(save(tmp_path / "data.parquet", Y), given)


def test_check_bytes_copied_column_without_grid_refused(tmp_path: Path) -> None:
    Y = np.column_stack([X[:, 0], X[:, 1] + 1.5])
    with pytest.raises(Refused, match="values of the records themselves"):
        check_bytes(save(tmp_path / "data.parquet", Y), expected(grid=None, atom=3e-4))


def test_check_bytes_constant_column_passes(tmp_path: Path) -> None:
    given = X.copy()
    given[5, 0] = 0.5
    Y = np.column_stack([np.full(N, 0.5), X[:, 1] + 1.5])
    check_bytes(save(tmp_path / "data.parquet", Y), expected(originals=(given,), grid=None))


def test_check_bytes_chance_coincidences_pass(tmp_path: Path) -> None:
    g = 0.125
    grid = np.rint(X / g) * g
    Y = np.rint((X + rng.normal(size=X.shape)) / g) * g
    given = expected(originals=(grid,), atom=0.1, grid=np.full(2, g))
    check_bytes(save(tmp_path / "data.parquet", Y), given)


def test_check_bytes_nan_refused(tmp_path: Path) -> None:
    Y = X + 1.5
    Y[0, 0] = np.nan
    with pytest.raises(Refused, match="not numbers"):
        check_bytes(save(tmp_path / "data.parquet", Y), expected())


WORDS = ("red", "green", "blue")
TRUE = rng.integers(0, 3, size=(N, 2), dtype=np.int32)


def categorical(gamma: float, missing: bool = False) -> tuple[tuple[Response, np.ndarray], ...]:
    columns = (Categorical(name, WORDS, missing) for name in ("c", "d"))
    return tuple((Response(c, gamma), T) for c, T in zip(columns, TRUE.T, strict=True))


def save_words(path: Path, codes: np.ndarray, odd: str | None = "red") -> Path:
    """A release without numbers; its first cell is ``odd``."""
    columns = {name: [WORDS[i] for i in codes[:, j]] for j, name in enumerate("cd")}
    columns["c"][0] = odd  # type: ignore[call-overload]
    table = pa.table({**columns, "label": LABEL})
    pq.write_table(table, path, write_statistics=False, use_dictionary=False, store_schema=False)
    return path


def check_words(path: Path, given: tuple[tuple[Response, np.ndarray], ...]) -> None:
    check_bytes(path, expected(columns=(), grid=None, originals=(X[:, :0],), categorical=given))


def draw_responses(gamma: float) -> np.ndarray:
    is_kept = rng.random(TRUE.shape) < gamma / (gamma + 2)
    return np.where(is_kept, TRUE, (TRUE + rng.integers(1, 3, size=TRUE.shape)) % 3)


@pytest.mark.parametrize("gamma", [1.1, 3.0, 100.0])
def test_check_bytes_randomized_categories_pass(tmp_path: Path, gamma: float) -> None:
    check_words(save_words(tmp_path / "data.parquet", draw_responses(gamma)), categorical(gamma))


def test_expected_content_names_order(tmp_path: Path) -> None:
    assert expected(categorical=categorical(3.0)).names == ("x", "y", "c", "d", "label")
    with pytest.raises(Refused, match="its columns are not"):
        check_bytes(
            save(tmp_path / "data.parquet", X + 1.5), expected(categorical=categorical(3.0))
        )


@pytest.mark.parametrize("odd", ["purple", None])
def test_check_bytes_undeclared_category_refused(tmp_path: Path, odd: str | None) -> None:
    path = save_words(tmp_path / "data.parquet", draw_responses(3.0), odd)
    with pytest.raises(Refused, match="not one that the release file declares") as caught:
        check_words(path, categorical(3.0))
    assert "purple" not in str(caught.value)


def test_check_bytes_declared_empty_category_passes(tmp_path: Path) -> None:
    path = save_words(tmp_path / "data.parquet", draw_responses(3.0), None)
    check_words(path, categorical(3.0, missing=True))


def test_check_bytes_too_many_true_categories_refused(tmp_path: Path) -> None:
    path = save_words(tmp_path / "data.parquet", draw_responses(9.0))
    with pytest.raises(Refused, match="true categories, more than chance"):
        check_words(path, categorical(3.0))


def test_check_bytes_true_category_rows_refused(tmp_path: Path) -> None:
    """Each column is true as often as it should be, but in the same records."""
    codes = np.where(np.arange(N)[:, None] % 5 < 3, TRUE, (TRUE + 1) % 3)
    with pytest.raises(Refused, match="all their categories true"):
        check_words(save_words(tmp_path / "data.parquet", codes), categorical(3.0))


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"write_statistics": True}, "statistics"),
        ({"use_dictionary": True}, "dictionaries"),
        ({"store_schema": True}, "metadata"),
    ],
)
def test_check_bytes_footer_metadata_refused(
    tmp_path: Path, option: dict[str, bool], sentence: str
) -> None:
    quiet = {"write_statistics": False, "use_dictionary": False, "store_schema": False}
    Y = X + 1.5
    table = pa.table({"x": Y[:, 0], "y": Y[:, 1], "label": LABEL})
    pq.write_table(table, tmp_path / "data.parquet", **{**quiet, **option})
    with pytest.raises(Refused, match=sentence):
        check_bytes(tmp_path / "data.parquet", expected())


def test_parquet_sink_no_metadata_same_bytes(tmp_path: Path) -> None:
    y = np.arange(200_000.0)
    rows = pa.table({"x": y * 0.5, "y": y, "label": ["a"] * len(y)})
    paths = [tmp_path / "one.parquet", tmp_path / "two.parquet"]
    for path, size in zip(paths, (200_000, 70_001), strict=True):
        with path.open("wb") as file:
            write((rows.slice(start, size) for start in range(0, len(y), size)), file)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    table = pq.read_table(paths[0])
    assert table.num_rows == 200_000
    assert table.column("y").to_pylist() == list(map(float, range(200_000)))
    metadata = pq.read_metadata(paths[0])
    assert [metadata.row_group(i).num_rows for i in range(3)] == [65_536] * 3
    assert metadata.metadata is None


def has_source_order(position: np.ndarray) -> bool:
    """Return whether rows with these places in the source are in the order of the source."""
    scan = OrderScan(len(position))
    scan.add(position)
    return scan.is_source_order()


def test_has_source_order_random_order_false() -> None:
    alarms = [
        has_source_order(rng.permutation(n).astype(np.float64))
        for n in (2, 13, 14, 50, 1000)
        for _ in range(200)
    ]
    assert not any(alarms)
    assert has_source_order(np.arange(14.0))
    assert not has_source_order(np.arange(13.0))  # chance does that once in 6e9


def test_has_source_order_rows_of_one_record_false() -> None:
    few = np.repeat([3.0, 8.0], 40)
    assert not any(has_source_order(rng.permutation(few)) for _ in range(200))
    assert not has_source_order(np.full(40, 5.0))
    assert has_source_order(np.repeat(np.arange(40.0), 5))


def test_max_by_chance_binomial_quantile() -> None:
    assert max_by_chance(100, 0.0) == 0
    assert max_by_chance(100, 1.0) == 100
    assert max_by_chance(1, 1e-10) == 0
    # Poisson with mean 1: P(more than 10) = 1.0e-8, P(more than 11) = 8.3e-10
    assert max_by_chance(1_000_000, 1e-6) == 11
