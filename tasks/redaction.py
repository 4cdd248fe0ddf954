"""The redaction of errors: libraries quote the values that they cannot handle.

Every step runs inside a ``Redaction``: errors of this program pass, any other error becomes a
``Defect`` that names the type of the error and the line of this program's code, before Prefect can
log or store it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from ppdm_core.model.errors import PpdmError
from warehouse.redaction import clear_frames, redact

P = ParamSpec("P")
R = TypeVar("R")


class Redaction:
    """A context that replaces errors that may quote a value."""

    def __enter__(self) -> Redaction:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not isinstance(error, Exception):
            return
        shown = error if isinstance(error, PpdmError) else redact(error)
        clear_frames(error)
        if shown is not error:
            try:
                raise shown from None
            finally:
                shown.__context__ = None  # some libraries pickle errors with their context


def redact_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that its errors quote no value."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        with Redaction():
            return function(*args, **kwargs)

    return guarded
