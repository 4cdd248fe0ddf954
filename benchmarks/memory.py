"""Peak memory of work in a process of its own, so that nothing done before counts (Linux)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path


def peak(work: Callable[..., object], *arguments: object) -> int:
    """Bytes that ``work``, a function of a module, needs above the interpreter with its imports."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_peak, work, arguments).result()


def _peak(work: Callable[..., object], arguments: tuple[object, ...]) -> int:
    before = _held("VmRSS")
    work(*arguments)
    return _held("VmHWM") - before


def _held(field: str) -> int:
    # The highest ru_maxrss of a child is that of the parent it was forked from, if that is higher.
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024
