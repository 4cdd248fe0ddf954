"""The errors that the product raises on purpose, and the exit code of each.

    PpdmError                    1   a defect, unless a subclass says otherwise
    |-- BadInput                 2   the release file or the data must change
    |-- Refused                  3   the gate or publishing refused the release
    |-- Undecided                4   the release needs a decision by a person
    |-- MachineTrouble           5   lock, disk or server: try again
    |-- Interrupted            130   the user pressed Ctrl-C
    |-- Defect                   1   a bug of the product, reported without any value of the data
    `-- NotApplicable            -   an attack or metric cannot run here; never an exit code

A message never holds a cell value, a key or a seed. It holds counts, row numbers, and names that
the release file declares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ppdm_core.model.reasons import Reason, Skip
from ppdm_core.model.shown_text import show_line


class PpdmError(Exception):
    """One clear sentence, with the file, the column and the remedy if there are any.

    ``others`` are further errors of the same kind in the same input.
    """

    kind = "defect"
    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        column: str | None = None,
        remedy: str | None = None,
        others: Sequence[PpdmError] = (),
    ) -> None:
        message = show_line(message)  # names of columns and files may hold anything
        super().__init__(message)
        self.message = message
        self.file = file
        self.column = column
        self.remedy = None if remedy is None else show_line(remedy)
        self.others = tuple(others)

    def __str__(self) -> str:
        text = self.message if self.remedy is None else f"{self.message} {self.remedy}"
        return " ".join([text, *map(str, self.others)])

    def __reduce__(self) -> tuple[object, ...]:
        fields = (self.message, self.file, self.column, self.remedy, self.others)
        return _rebuild, (type(self), *fields)

    def as_dict(self) -> dict[str, Any]:
        names = ("message", "file", "column", "remedy")
        return {
            "kind": self.kind,
            **{name: getattr(self, name) for name in names},
            "others": [{name: getattr(each, name) for name in names} for each in self.others],
        }

    def list_all(self) -> tuple[PpdmError, ...]:
        """Return this error without the others, and then the others."""
        first = type(self)(self.message, file=self.file, column=self.column, remedy=self.remedy)
        return (first, *self.others)


def _rebuild(
    cls: type[PpdmError],
    message: str,
    file: str | None,
    column: str | None,
    remedy: str | None,
    others: tuple[PpdmError, ...],
) -> PpdmError:
    return cls(message, file=file, column=column, remedy=remedy, others=others)


class BadInput(PpdmError):
    """The release file or the data must change."""

    kind = "bad_input"
    exit_code = 2

    def in_file(self, file: str | None, *, only_unnamed: bool = False) -> BadInput:
        """Return the same error about a file; ``only_unnamed`` keeps a file that is named."""
        parts = [
            BadInput(
                each.message,
                file=each.file or file if only_unnamed else file,
                column=each.column,
                remedy=each.remedy,
            )
            for each in self.list_all()
        ]
        return join_errors(parts)


class ErrorList:
    """Bad input that is collected, so that all of it is reported at once."""

    def __init__(self) -> None:
        self.found: list[BadInput] = []

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Note the bad input that the block raises, and go on after it."""
        try:
            yield
        except BadInput as error:
            self.add(error)

    def add(self, error: BadInput) -> None:
        """Note bad input; what was noted before is not repeated."""
        known = {(each.message, each.column) for each in self.found}
        for each in error.list_all():
            if isinstance(each, BadInput) and (each.message, each.column) not in known:
                self.found.append(each)

    def raise_all(self) -> None:
        """Raise everything that was noted as one error; do nothing if there is nothing."""
        if self.found:
            raise join_errors(self.found)


def join_errors(found: Sequence[BadInput]) -> BadInput:
    """Return the first error with all others."""
    first, *others = found
    return BadInput(
        first.message, file=first.file, column=first.column, remedy=first.remedy, others=others
    )


class Refused(PpdmError):
    """The gate or publishing refused the release."""

    kind = "refused"
    exit_code = 3


class Undecided(PpdmError):
    """A person must decide about the release."""

    kind = "undecided"
    exit_code = 4


class MachineTrouble(PpdmError):
    """A lock, disk or server failed; try again."""

    kind = "machine"
    exit_code = 5


class Interrupted(PpdmError):
    """The user stopped the command."""

    kind = "interrupted"
    exit_code = 130


class Defect(PpdmError):
    """A bug of the product."""

    trace: tuple[str, ...] = ()  # places in our own code, the innermost last; no values
    report: str | None = None  # the file that holds them, once it is written


class NotApplicable(PpdmError):
    """An attack or metric cannot run on this release; the reason says why."""

    kind = "not_applicable"

    def __init__(self, message: str, *, reason: Reason = Reason.MISSING_KNOWLEDGE) -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_not_applicable, (self.message, self.reason)

    @property
    def skip(self) -> Skip:
        """The error as an entry of an audit report."""
        return Skip(self.reason, self.message)


def _rebuild_not_applicable(message: str, reason: Reason) -> NotApplicable:
    return NotApplicable(message, reason=reason)
