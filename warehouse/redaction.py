"""Errors without values: libraries quote the values that they cannot handle."""

from __future__ import annotations

import errno
import traceback
from pathlib import Path

from ppdm_core.model.errors import Defect, MachineTrouble, PpdmError
from warehouse.home import DISK_ERRORS

ROOT = Path(__file__).resolve().parent.parent
NETWORK_PACKAGES = ("httpx", "httpcore")  # only the Prefect client talks to a network


def clear_frames(error: BaseException | None) -> None:
    """Empty the frames of an error, which hold rows and connections: Prefect stores errors."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error.__cause__, before = None, error.__cause__ or error.__context__
        error.__context__, error = None, before


def redact(error: Exception) -> PpdmError:
    """Return an error without any value that the given one may quote."""
    cause = DISK_ERRORS.get(error.errno or 0) if isinstance(error, OSError) else None
    if cause or "no space left" in str(error).lower():
        return MachineTrouble(
            f"The work stopped: {cause or DISK_ERRORS[errno.ENOSPC]}.",
            remedy="Free it and try again.",
        )
    if type(error).__module__.partition(".")[0] in NETWORK_PACKAGES:
        return MachineTrouble(
            "The Prefect server stopped answering.", remedy="Run the same release again."
        )
    trace = list_code_places(error)
    place = trace[-1] if trace else "an unknown place"
    defect = Defect(
        f"A defect of ppdm: {type(error).__name__} at {place}.",
        remedy="Nothing was published. Please report this line.",
    )
    defect.trace = trace
    return defect


def list_code_places(error: BaseException) -> tuple[str, ...]:
    """Return the lines of this program's code, the innermost last; no argument and no value."""
    return tuple(
        f"{Path(frame.filename).relative_to(ROOT)}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if ROOT in Path(frame.filename).parents and "site-packages" not in frame.filename
    )
