"""Everything that can go wrong on purpose, and the exit code it ends in.

    PpdmError                    1   a defect, unless a subclass says otherwise
    |-- BadInput                 2   the release file or the data must change
    |-- Refused                  3   the gate or the door said no
    |-- Undecided                4   too little is known to say yes or no: somebody must look
    |-- MachineTrouble           5   lock, disk, server: try again
    |-- Defect                   1   a bug of ours, told without any value of the data
    `-- NotApplicable            -   an attack or metric has nothing to work on; never an exit

No message ever holds a cell value, a key or a seed: only counts, row numbers, and names that
the release file declares.
"""

from __future__ import annotations


class PpdmError(Exception):
    """One clear sentence, and where it happened."""

    kind = "defect"
    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        column: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.column = column
        self.remedy = remedy

    def __str__(self) -> str:
        return self.message if self.remedy is None else f"{self.message} {self.remedy}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.file, self.column, self.remedy)

    def as_dict(self) -> dict[str, str | None]:
        return {
            "kind": self.kind,
            "message": self.message,
            "file": self.file,
            "column": self.column,
            "remedy": self.remedy,
        }


def _rebuild(
    cls: type[PpdmError],
    message: str,
    file: str | None,
    column: str | None,
    remedy: str | None,
) -> PpdmError:
    return cls(message, file=file, column=column, remedy=remedy)


class BadInput(PpdmError):
    kind = "bad_input"
    exit_code = 2


class Refused(PpdmError):
    kind = "refused"
    exit_code = 3


class Undecided(PpdmError):
    kind = "undecided"
    exit_code = 4


class MachineTrouble(PpdmError):
    kind = "machine"
    exit_code = 5


class Defect(PpdmError):
    trace: tuple[str, ...] = ()  # places in our own code, the innermost last; no values
    report: str | None = None  # the file that holds them, once it is written


class NotApplicable(PpdmError):
    kind = "not_applicable"
