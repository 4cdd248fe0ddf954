"""Peak memory of work in a separate process (Linux)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path


def measure_peak_memory(work: Callable[..., object], *arguments: object) -> int:
    """Return the bytes that a module-level function needs above the interpreter and imports."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measure_peak_memory, work, arguments).result()


def measure_whole_memory(work: Callable[..., object], *arguments: object) -> int:
    """Return the bytes of a process that calls a module-level function, imports included."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measure_whole_memory, work, arguments).result()


def _measure_whole_memory(work: Callable[..., object], arguments: tuple[object, ...]) -> int:
    work(*arguments)
    return _read_status("VmHWM")


def _measure_peak_memory(work: Callable[..., object], arguments: tuple[object, ...]) -> int:
    before = _read_status("VmRSS")
    work(*arguments)
    return _read_status("VmHWM") - before


def _read_status(field: str) -> int:
    # The highest ru_maxrss of a child is that of the parent it was forked from, if that is higher.
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024
