"""The results as a table, and as JSON with the facts of the machine."""

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


def table(results: Sequence[Result]) -> str:
    rows = [HEADER, *map(row, results)]
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(HEADER))]
    lines = ["  ".join(map(str.ljust, cells, widths)).rstrip() for cells in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    notes = [
        f"{result.comparison.name}: {note}" for result in results for note in explained(result)
    ]
    return "\n".join([*lines, "", *notes])


def row(result: Result) -> tuple[str, ...]:
    says = "x as fast" if result.comparison.is_speed else "x as long"
    return (
        result.comparison.name,
        amount(result, result.ours),
        amount(result, result.peer),
        f"{figure(result.ratio)}{says}",
        f"{figure(min(result.ratios))} to {figure(max(result.ratios))}",
        target(result.comparison),
        {None: "", True: "yes", False: "NO"}[result.met],
    )


def explained(result: Result) -> list[str]:
    sides = f"{result.ours.label}, against {result.peer.label}."
    return [sides, *map(str, result.comparison.figures), *result.comparison.notes]


def amount(result: Result, times: Times) -> str:
    if result.comparison.is_speed:
        return f"{1 / times.median:,.0f} {result.comparison.unit}/s"
    return f"{times.median:.3g} s"


def target(comparison: Comparison) -> str:
    if comparison.at_least is not None:
        return f"at least {comparison.at_least:g}"
    return "" if comparison.at_most is None else f"at most {comparison.at_most:g}"


def figure(value: float) -> str:
    return f"{value:.0f}" if value >= 20 else f"{value:.2f}"


def machine() -> dict[str, Any]:
    import numpy as np
    from threadpoolctl import threadpool_info

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "cores": os.cpu_count(),
        "cpu": cpu_model(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "python": sys.version.split()[0],
        "blas": f"{blas['name']} {blas['version']}",
        "blas_threads": [
            pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"
        ],
        "load_average": os.getloadavg(),
        "versions": {name: installed(name) for name in PACKAGES},
    }


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def in_a_line(facts: dict[str, Any]) -> str:
    load = ", ".join(f"{value:.1f}" for value in facts["load_average"])
    return (
        f"{facts['cores']} cores of {facts['cpu']}, {facts['memory_gib']:g} GiB, "
        f"Python {facts['python']}, numpy {facts['versions']['numpy']} on {facts['blas']} "
        f"({max(facts['blas_threads'], default=0)} threads), load {load}"
    )
