"""Files of statistics packages, read in pieces: codes stay codes, dates become ISO text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from warehouse.columns import RESERVED, Source
from warehouse.sources._reader import FileReader
from warehouse.sources.checks import check_header

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import pyarrow as pa

ROWS = f"{RESERVED}statistics"
BATCH_ROWS = 200_000  # each piece reads the file up to its start again


class StatisticsFile(FileReader):
    """A kind of file that pyreadstat reads."""

    @abstractmethod
    def choose_function(self, path: str) -> Callable[..., Any]:
        """Return the function of pyreadstat that reads a file."""

    def select_rows(self, db: duckdb.DuckDBPyConnection, source: Source) -> str:
        import pyarrow as pa
        import pyreadstat

        try:
            _, found = self.choose_function(source.path)(source.path, metadataonly=True)
            check_header(found.column_names, source)
            is_text = self._find_texts(source)
        except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, OSError, ValueError):
            raise self.describe_bad_file(source) from None
        kinds = {True: pa.string(), False: pa.float64()}
        schema = pa.schema([(name, kinds[is_text.get(name, True)]) for name in found.column_names])
        batches = (_convert(frame, schema) for frame in self._read(source))
        db.register(ROWS, pa.RecordBatchReader.from_batches(schema, batches))
        return f"select * from {ROWS}"

    def _read(self, source: Source) -> Iterator[pd.DataFrame]:
        import pyreadstat

        pieces = pyreadstat.read_file_in_chunks(
            self.choose_function(source.path), source.path, chunksize=BATCH_ROWS
        )
        for frame, _ in pieces:
            yield frame

    def _find_texts(self, source: Source) -> dict[str, bool]:
        """Return for each column whether it holds anything except numbers."""
        import numpy as np

        is_text: dict[str, bool] = {}
        for frame in self._read(source):
            for name in frame.columns:
                kind = frame[name].dtype
                is_number = isinstance(kind, np.dtype) and kind.kind in "fiu"
                is_text[name] = is_text.get(name, False) or not is_number
        return is_text


def _convert(frame: pd.DataFrame, schema: pa.Schema) -> pa.RecordBatch:
    """Return a piece as Arrow; an empty text is an empty cell."""
    import pyarrow as pa

    arrays = []
    for field in schema:
        column = frame[field.name]
        if field.type == pa.float64():
            arrays.append(pa.array(column.to_numpy("float64"), pa.float64(), from_pandas=True))
            continue
        text = column.astype(object).where(column.notna() & (column != ""), None)
        cells = [None if cell is None else _format(cell) for cell in text]
        arrays.append(pa.array(cells, pa.string()))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _format(cell: Any) -> str:
    """Return a cell as text: a date as YYYY-MM-DD, a whole number without a point."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).removesuffix(" 00:00:00")
