"""SAS data files and transport files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warehouse.sources._statistics_file import StatisticsFile


class Sas(StatisticsFile):
    """SAS files."""

    name = "sas"
    endings = (".xpt", ".sas7bdat")

    def choose_function(self, path: str) -> Callable[..., Any]:
        import pyreadstat

        if path.lower().endswith(".sas7bdat"):
            return pyreadstat.read_sas7bdat
        return pyreadstat.read_xport
