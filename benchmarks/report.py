"""The results as a table, and a description of the machine."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.harness import Comparison, Result, Times

PACKAGES = (
    "ppdm",
    "numpy",
    "scipy",
    "scikit-learn",
    "cryptography",
    "opendp",
    "prefect",
    "mlflow",
    "great-expectations",
    "duckdb",
    "typer",
)
HEADER = ("benchmark", "ours", "peer", "ratio", "spread", "target", "met")


def format_table(results: Sequence[Result]) -> str:
    """Return all results as a text table with notes."""
    rows = [HEADER, *map(format_row, results)]
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(HEADER))]
    lines = ["  ".join(map(str.ljust, cells, widths)).rstrip() for cells in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    notes = [
        f"{result.comparison.name}: {note}" for result in results for note in list_notes(result)
    ]
    return "\n".join([*lines, "", *notes])


def format_row(result: Result) -> tuple[str, ...]:
    """Return the cells of one result."""
    suffix = "x as fast" if result.comparison.is_speed else "x as long"
    return (
        result.comparison.name,
        format_amount(result, result.ours),
        format_amount(result, result.peer),
        f"{format_figure(result.ratio)}{suffix}",
        f"{format_figure(min(result.ratios))} to {format_figure(max(result.ratios))}",
        format_target(result.comparison),
        {None: "", True: "yes", False: "NO"}[result.met],
    )


def list_notes(result: Result) -> list[str]:
    """Return the lines below the table about one result."""
    sides = f"{result.ours.label}, against {result.peer.label}."
    return [sides, *map(str, result.comparison.figures), *result.comparison.notes]


def format_amount(result: Result, times: Times) -> str:
    """Return the speed or the seconds of one side."""
    if result.comparison.is_speed:
        return f"{1 / times.median:,.0f} {result.comparison.unit}/s"
    return f"{times.median:.3g} s"


def format_target(comparison: Comparison) -> str:
    """Return the target of a comparison."""
    if comparison.at_least is not None:
        return f"at least {comparison.at_least:g}"
    return "" if comparison.at_most is None else f"at most {comparison.at_most:g}"


def format_figure(value: float) -> str:
    """Return a ratio with few digits."""
    return f"{value:.0f}" if value >= 20 else f"{value:.2f}"


def describe_machine() -> dict[str, Any]:
    """Return the hardware, the load and the versions of packages."""
    import numpy as np
    from threadpoolctl import threadpool_info

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "cores": os.cpu_count(),
        "cpu": read_cpu_model(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "python": sys.version.split()[0],
        "blas": f"{blas['name']} {blas['version']}",
        "blas_threads": [
            pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"
        ],
        "load_average": os.getloadavg(),
        "versions": {name: get_version(name) for name in PACKAGES},
    }


def read_cpu_model() -> str:
    """Return the model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def get_version(name: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def format_machine(facts: dict[str, Any]) -> str:
    """Return the machine on one line."""
    load = ", ".join(f"{value:.1f}" for value in facts["load_average"])
    return (
        f"{facts['cores']} cores of {facts['cpu']}, {facts['memory_gib']:g} GiB, "
        f"Python {facts['python']}, numpy {facts['versions']['numpy']} on {facts['blas']} "
        f"({max(facts['blas_threads'], default=0)} threads), load {load}"
    )
