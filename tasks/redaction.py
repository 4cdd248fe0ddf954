"""Errors of libraries quote the values they choke on. None of them passes here.

Every step runs inside a ``Shield``: our own errors go through, any other becomes a ``Defect`` that
names the kind of error and the line of our code, before Prefect can log or store it.
"""

from __future__ import annotations

import errno
import functools
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, TypeVar

from ppdm_core.model.errors import Defect, MachineTrouble, PpdmError

P = ParamSpec("P")
R = TypeVar("R")
ROOT = Path(__file__).resolve().parent.parent
DISK = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "permission is denied",
    errno.EIO: "the disk does not answer",
}

NETWORK = ("httpx", "httpcore")  # only the Prefect client talks to a network


class Shield:
    def __enter__(self) -> Shield:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not isinstance(error, Exception):
            return
        shown = error if isinstance(error, PpdmError) else without_values(error)
        forget(error)
        if shown is not error:
            raise shown from None


def forget(error: BaseException | None) -> None:
    """Prefect keeps errors: empty the frames behind this one, which hold rows and connections."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error.__cause__, before = None, error.__cause__ or error.__context__
        error.__context__, error = None, before


def without_values(error: Exception) -> PpdmError:
    cause = DISK.get(error.errno or 0) if isinstance(error, OSError) else None
    if cause or "no space left" in str(error).lower():
        return MachineTrouble(
            f"The work stopped: {cause or DISK[errno.ENOSPC]}.", remedy="Free it and try again."
        )
    if type(error).__module__.partition(".")[0] in NETWORK:
        return MachineTrouble(
            "The Prefect server stopped answering.", remedy="Run the same release again."
        )
    trace = places_of(error)
    place = trace[-1] if trace else "an unknown place"
    defect = Defect(
        f"A defect of ppdm: {type(error).__name__} at {place}.",
        remedy="Nothing was published. Please report this line.",
    )
    defect.trace = trace
    return defect


def places_of(error: BaseException) -> tuple[str, ...]:
    """Lines of our own code, the innermost last; never an argument or a value."""
    return tuple(
        f"{Path(frame.filename).relative_to(ROOT)}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if ROOT in Path(frame.filename).parents and "site-packages" not in frame.filename
    )


def shielded(function: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        with Shield():
            return function(*args, **kwargs)

    return guarded
