"""Read a table from a CSV or Parquet file without the warehouse."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.errors import BadInput
from ppdm_core.two_tables.tables import Table

if TYPE_CHECKING:
    import pandas as pd

PARQUET_ENDINGS = (".parquet", ".pq")
CSV_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
DELIMITERS = (",", ";", "\t", "|")


def read_table(path: Path, label: str | None) -> Table:
    """Return the columns of a file in the order of its rows.

    A column is numeric if most of its filled cells are numbers and it is not the label; its other
    cells become NaN. Any other column holds text, with "" for missing cells. `ppdm audit` reads
    files by the same rule.
    """
    frame = read_frame(path)
    if frame.columns.has_duplicates:
        raise unreadable_error(path, "has two columns of the same name")
    columns = {name: read_column(frame[name], name == label) for name in frame.columns}
    return Table(path.name, columns)


def read_frame(path: Path) -> pd.DataFrame:
    """Return the content of a file; cells of a CSV file are text."""
    import pyarrow.parquet as pq

    name = path.name.lower()
    if not path.is_file():
        raise unreadable_error(path, "does not exist")
    try:
        if name.endswith(PARQUET_ENDINGS):
            return pq.read_table(path).to_pandas()
        if name.endswith(CSV_ENDINGS):
            return read_csv(path)
    except (OSError, ValueError, EOFError):  # the message may quote a cell
        raise unreadable_error(path, "cannot be read") from None
    raise unreadable_error(path, "is not known to be a table")


def read_csv(path: Path) -> pd.DataFrame:
    """Return the cells of a CSV file as text; a row of another width is an error."""
    import pyarrow as pa
    from pyarrow import csv

    dialect = csv.ParseOptions(delimiter=find_delimiter(path), newlines_in_values=True)
    with csv.open_csv(path, parse_options=dialect) as reader:
        names = reader.schema.names
    text = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    return csv.read_csv(path, parse_options=dialect, convert_options=text).to_pandas()


def find_delimiter(path: Path) -> str:
    """Return the delimiter that is most frequent in the first line."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        header = file.readline()
    return max(DELIMITERS, key=lambda each: header.count(each.encode()))


def read_column(cells: pd.Series[Any], is_label: bool) -> NDArray[Any]:
    """Return cells as numbers or as text; dates and booleans are no numbers."""
    import pandas as pd

    is_filled = (cells.notna() & (cells != "")).to_numpy(dtype=bool)
    text = np.where(is_filled, cells.astype(str), "").astype(object)
    if pd.api.types.is_numeric_dtype(cells) and not pd.api.types.is_bool_dtype(cells):
        numbers = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        numbers = np.array([parse_number(cell) for cell in text], dtype=np.float64)
    is_numeric = 2 * np.sum(~np.isnan(numbers)) > np.sum(is_filled)
    return numbers if is_numeric and not is_label else text


def parse_number(text: str) -> float:
    """Return the number that a text holds, else NaN; pandas 2 does not parse all digits."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def unreadable_error(path: Path, what: str) -> BadInput:
    """Return the error of a file that holds no table that can be read."""
    endings = ", ".join((*CSV_ENDINGS, *PARQUET_ENDINGS))
    return BadInput(
        f"The table {path.name} {what}.",
        file=str(path),
        remedy=f"Give a file that ends in {endings}, or a data frame.",
    )
