from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ppdm_core.model.errors import BadInput, Refused
from tests.contract.checks_sinks import write_folder
from warehouse.columns import Column
from warehouse.sinks.parquet import Parquet

OPTIONS = {"partition": "group"}
LABEL = Column("group", "label", "categorical", categories=("a", "b"))


def test_write_partitioned_each_file_has_the_rows_of_one_value(tmp_path: Path) -> None:
    write_folder(tmp_path)
    Parquet().write(tmp_path, OPTIONS)
    found = {path.name: pq.read_table(path) for path in tmp_path.glob("data.group*")}
    assert len(found) == 6
    assert found["data.group=a.parquet"]["group"].to_pylist() == ["a"]
    assert found["data.group=line%0Abreak.parquet"].num_rows == 1
    assert found["data.group.parquet"]["group"].to_pylist() == [None]
    metadata = pq.read_metadata(tmp_path / "data.group=a.parquet")
    assert metadata.metadata is None and not metadata.row_group(0).column(0).is_stats_set


def test_write_column_not_released_refused(tmp_path: Path) -> None:
    write_folder(tmp_path)
    with pytest.raises(Refused, match="does not release"):
        Parquet().write(tmp_path, {"partition": "x"})


@pytest.mark.parametrize(
    "column", [Column("group", "identifier"), Column("group", "feature", "numeric"), None]
)
def test_check_columns_no_category_refused(column: Column | None) -> None:
    with pytest.raises(BadInput, match="cannot be partitioned by 'group'"):
        Parquet().check_columns([column] if column else [], OPTIONS)


def test_check_columns_long_category_refused() -> None:
    label = Column("group", "label", "categorical", categories=("a", "b" * 250))
    with pytest.raises(BadInput, match="too long"):
        Parquet().check_columns([label], OPTIONS)
    Parquet().check_columns([LABEL], OPTIONS)
