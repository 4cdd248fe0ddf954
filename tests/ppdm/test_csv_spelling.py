"""What the text of a CSV file can hold besides its values."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv

import ppdm
from ppdm.csv_spelling import LINES, find_varied_columns
from tests.support.policies import QUICK

N = 400


def make_frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "a": rng.normal(size=N) * 3,
            "few": rng.integers(0, 5, N).astype(float),
            "count": rng.integers(-3, 100_000, N),
            "town": rng.choice(["Ulm", "Bonn, Bad", 'the "old" one', "Trier"], N),
            "day": pd.date_range("2000-01-01", periods=N).astype(str),
            "gaps": np.where(rng.random(N) < 0.3, np.nan, rng.lognormal(0, 9, N)),
            "small": rng.normal(size=N) * 1e-5,
        }
    )


def find(path: Path, frame: pd.DataFrame) -> tuple[str, ...]:
    return find_varied_columns(path, list(frame.columns), len(frame))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"quoting": csv.QUOTE_ALL},
        {"quoting": csv.QUOTE_NONNUMERIC},
        {"lineterminator": "\r\n"},
        {"sep": ";"},
        {"sep": "\t"},
        {"sep": "|"},
        {"na_rep": "NA"},
        *({"float_format": each} for each in ("%.2f", "%.3e", "%.6g", "%#.4g", "%+.2f", "%12.4f")),
    ],
    ids=str,
)
def test_find_varied_columns_file_of_pandas_none(options: dict, tmp_path: Path) -> None:
    frame = make_frame()
    frame.to_csv(tmp_path / "t.csv", index=False, **options)
    assert find(tmp_path / "t.csv", frame) == ()


def test_find_varied_columns_files_of_other_writers_none(tmp_path: Path) -> None:
    frame, path = make_frame(), tmp_path / "t.csv"
    duckdb.sql(f"copy frame to '{path}' (header)")
    assert find(path, frame) == ()
    arrow_csv.write_csv(pa.Table.from_pandas(frame), path)
    assert find(path, frame) == ()
    with gzip.open(tmp_path / "t.csv.gz", "wb") as file:
        file.write(path.read_bytes())
    assert find(tmp_path / "t.csv.gz", frame) == ()
    numbers = frame[["a", "few", "small"]]
    np.savetxt(path, numbers, delimiter=",", header="a,few,small", comments="")
    assert find(path, numbers) == ()
    frame.to_parquet(tmp_path / "t.parquet")
    assert find(tmp_path / "t.parquet", frame) == ()


def test_find_varied_columns_exponents_where_they_are_shorter_none(tmp_path: Path) -> None:
    """R writes 100000 as 1e+05, and 123456 as it is."""
    path = tmp_path / "t.csv"
    numbers = ["1e+05", "123456", "0.00012", "1e-04", "1.234567e-07", "0", "-2e+06", "12.5", "9"]
    path.write_text("\n".join(["x", *numbers]) + "\n")
    assert find_varied_columns(path, ["x"], len(numbers)) == ()
    path.write_text("\n".join(["x", *numbers, "100000"]) + "\n")
    assert find_varied_columns(path, ["x"], len(numbers) + 1) == ("x",)


@pytest.mark.parametrize(
    "write",
    [
        lambda value, k: f"{value:.{k + 1}f}",
        lambda value, k: f'"{value}"' if k else f"{value}",
        lambda value, k: f" {value}" if k else f"{value}",
        lambda value, k: f"{value:e}" if k else f"{value}",
        lambda value, k: f"{abs(value):+}" if k else f"{abs(value)}",
        lambda value, k: f"{0 if k else ''}{abs(value)}",
        lambda value, k: f"{abs(value) % 1:.1f}"[0 if k else 1 :],
        lambda value, k: f"{int(value)}.0" if k else f"{int(value)}",
        lambda value, k: ("", '""')[k] if value < 0 else f"{value}",
        lambda value, k: ("NA", "none")[k] if value < -4 else f"{value}",
        lambda value, k: ("1.5e20", "1.5E20")[k],
        lambda value, k: ("red", '"red"')[k],
        lambda value, k: ("2020-01-02", "2020-1-2")[k],
        lambda value, k: ("2020-01-02", "2020/01/02")[k],
    ],
)
def test_find_varied_columns_cells_written_in_two_ways_named(
    write: Callable[[float, int], str], tmp_path: Path
) -> None:
    rng = np.random.default_rng(4)
    values, bits = np.round(3 * rng.normal(size=N), 1), rng.integers(0, 2, N)
    cells = [write(value, bit) for value, bit in zip(values.tolist(), bits.tolist(), strict=True)]
    path = tmp_path / "t.csv"
    rows = [f"{value},{cell}\n" for value, cell in zip(values, cells, strict=True)]
    path.write_text("a,b\n" + "".join(rows))
    assert find_varied_columns(path, ["a", "b"], N) == ("b",)


@pytest.mark.parametrize("ends", [("\n", "\r\n"), ("\n", "\n\n")])
def test_find_varied_columns_lines_of_two_kinds_named(
    ends: tuple[str, str], tmp_path: Path
) -> None:
    bits = np.random.default_rng(5).integers(0, 2, N)
    path = tmp_path / "t.csv"
    path.write_bytes(("a,b\n" + "".join(f"1.5,2.5{ends[bit]}" for bit in bits)).encode())
    assert find_varied_columns(path, ["a", "b"], N) == (LINES,)


def test_audit_file_with_varied_text_review_with_the_remedy(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(120, 2))
    Y = X + 20 * rng.laplace(size=X.shape)
    frame = pd.DataFrame(Y, columns=["a", "b"])
    frame.to_csv(tmp_path / "plain.csv", index=False)
    text = frame.round(2).astype(str)
    text["b"] = np.where(X[:, 0] > 0, text["b"] + "0", text["b"])
    text.to_csv(tmp_path / "varied.csv", index=False)
    (tmp_path / "quick.toml").write_text(QUICK)
    found = {
        name: ppdm.audit(
            pd.DataFrame(X, columns=["a", "b"]), tmp_path / name, policy=tmp_path / "quick.toml"
        )
        for name in ("plain.csv", "varied.csv")
    }
    doubts = [
        [each.why for each in report.findings if each.check == "doubt"] for report in found.values()
    ]
    assert not any("in several ways" in why for why in doubts[0])
    (why,) = [why for why in doubts[1] if "in several ways" in why]
    assert "'b'" in why and "'a'" not in why and "Write the file anew" in why
    assert found["varied.csv"].verdict != "PASS"
