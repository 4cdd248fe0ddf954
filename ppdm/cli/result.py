"""How a command ends: text or one JSON object on standard output, and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from json import dumps
from typing import TYPE_CHECKING, Any, NoReturn

from ppdm_core.model.errors import Interrupted, PpdmError
from ppdm_core.model.shown_text import show_line, show_lines

if TYPE_CHECKING:
    from tasks.progress import Step


@dataclass(frozen=True)
class CommandResult:
    """Text and JSON payload of a command; a refusal is a result with an error."""

    text: str
    payload: dict[str, Any] = field(default_factory=dict)
    exit_code: int = 0
    error: PpdmError | None = None


def run_command(
    command: Callable[[], CommandResult],
    steps: Sequence[Step] = (),
    *,
    json: bool = False,
    live: bool = True,
) -> NoReturn:
    """Run a command, print its result and exit with its exit code.

    The command does its own slow imports, so that its progress is shown before.
    """
    from ppdm.cli.progress import show_progress

    try:
        with show_progress(steps, live=live):
            from tasks.redaction import Redaction

            with Redaction():
                result = command()
    except KeyboardInterrupt:
        error = Interrupted("Interrupted.", remedy="Nothing was kept. Run the same command again.")
        result = CommandResult(format_error(error), exit_code=error.exit_code, error=error)
    except PpdmError as error:
        result = CommandResult(format_error(error), exit_code=error.exit_code, error=error)
    if json:
        print(dumps(build_json(result), ensure_ascii=False))
    elif result.text:
        is_error = result.error is not None and not result.payload
        print(show_lines(result.text), file=sys.stderr if is_error else sys.stdout)
    sys.stdout.flush()
    raise SystemExit(result.exit_code)


def build_json(result: CommandResult) -> dict[str, Any]:
    """Return the object that `--json` prints."""
    return {
        "ok": result.exit_code == 0,
        "exit_code": result.exit_code,
        "error": result.error.as_dict() if result.error else None,
        **result.payload,
    }


def format_error(error: PpdmError) -> str:
    """Return one line with file and column, each named once."""
    message = str(error)
    column = f"column '{error.column}'" if error.column else None
    where = [part for part in (error.file, column) if part and part.lower() not in message.lower()]
    return show_line(": ".join(["ppdm", *where, message]))
