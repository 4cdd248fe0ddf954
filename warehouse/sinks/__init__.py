"""Every further place or format of a published release. One file for each sink, one line here."""

from __future__ import annotations

from warehouse.sinks._sink import Delivery, FileSink, ServerSink, Sink, SinkSettings
from warehouse.sinks.csv import Csv
from warehouse.sinks.duckdb import Duckdb
from warehouse.sinks.parquet import Parquet
from warehouse.sinks.postgresql import Postgresql
from warehouse.sinks.s3 import S3

__all__ = ["SINKS", "Delivery", "FileSink", "ServerSink", "Sink", "SinkSettings"]

SINKS: dict[str, Sink] = {
    "parquet": Parquet(),
    "csv": Csv(),
    "duckdb": Duckdb(),
    "postgresql": Postgresql(),
    "s3": S3(),
}
