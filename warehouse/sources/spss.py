"""SPSS data files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warehouse.sources._statistics_file import StatisticsFile


class Spss(StatisticsFile):
    """SPSS files."""

    name = "spss"
    endings = (".sav", ".zsav")

    def choose_function(self, path: str) -> Callable[..., Any]:
        import pyreadstat

        return pyreadstat.read_sav
