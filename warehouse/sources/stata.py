"""Stata data files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warehouse.sources._statistics_file import StatisticsFile


class Stata(StatisticsFile):
    """Stata files."""

    name = "stata"
    endings = (".dta",)

    def choose_function(self, path: str) -> Callable[..., Any]:
        import pyreadstat

        return pyreadstat.read_dta
