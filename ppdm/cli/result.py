"""How a command ends: text or one JSON object on standard output, and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from json import dumps
from typing import TYPE_CHECKING, Any, NoReturn

from ppdm.cli.ctrl_c import is_interruption, note_ctrl_c
from ppdm_core.model.errors import Interrupted, PpdmError
from ppdm_core.model.shown_text import show_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tasks.progress import Step

SCHEMA_VERSION = 1  # a change that breaks readers of `--json` increases it


@dataclass(frozen=True)
class CommandResult:
    """What a command prints, and its JSON payload; a refusal is a result with an error."""

    view: RenderableType
    payload: dict[str, Any] = field(default_factory=dict)
    exit_code: int = 0
    error: PpdmError | None = None

    @property
    def text(self) -> str:
        """What is printed to a file."""
        from ppdm.cli.console import render_text

        return render_text(self.view)


def run_command(
    name: str,
    command: Callable[[], CommandResult],
    steps: Sequence[Step] = (),
    *,
    json: bool = False,
    live: bool = True,
    kept: str = "nothing was kept",
) -> NoReturn:
    """Run a command, print its result and exit with its exit code.

    The command does its own slow imports, so that its progress is shown before. ``kept`` is what
    Ctrl-C leaves, unless the command itself raises ``Interrupted``.
    """
    from ppdm.cli.progress import show_progress

    try:
        with note_ctrl_c(), show_progress(steps, live=live):
            from tasks.redaction import Redaction

            with Redaction():
                result = command()
    except (KeyboardInterrupt, PpdmError) as error:
        result = build_failure(explain_interruption(error, kept))
    if json:
        print(dumps(build_json(name, result), ensure_ascii=False, allow_nan=False))
    elif result.view:
        print_result(result)
    sys.stdout.flush()
    raise SystemExit(result.exit_code)


def explain_interruption(error: KeyboardInterrupt | PpdmError, kept: str) -> PpdmError:
    """Return what Ctrl-C leaves if the error comes from it, else the error."""
    if isinstance(error, Interrupted) or not is_interruption(error):
        assert isinstance(error, PpdmError)
        return error
    remedy = "To start again, run the same command."
    return Interrupted(f"Interrupted; {kept}.", remedy=remedy)


def build_failure(error: PpdmError) -> CommandResult:
    """Return the result of a command that an error ended."""
    return CommandResult(format_error(error), exit_code=error.exit_code, error=error)


def print_result(result: CommandResult) -> None:
    """Print a result; an error without a payload goes to standard error."""
    from ppdm.cli.console import print_view

    if result.error is not None and not result.payload:
        print(result.text, file=sys.stderr)
    else:
        print_view(result.view)


def build_json(name: str, result: CommandResult) -> dict[str, Any]:
    """Return the object that `--json` prints."""
    return {
        "schema": name_schema(name),
        "ok": result.exit_code == 0,
        "exit_code": result.exit_code,
        "error": result.error.as_dict() if result.error else None,
        **result.payload,
    }


def name_schema(command: str) -> str:
    """Return the name and version of the schema of a command's reply."""
    return f"ppdm.{command}.{SCHEMA_VERSION}"


def format_error(error: PpdmError) -> str:
    """Return one line with file and column, each named once; several errors are a list."""
    if not error.others:
        return f"ppdm: {describe_error(error, error.file)}"
    errors = error.list_all()
    files = list(dict.fromkeys(each.file for each in errors if each.file))
    where = "".join(f"{show_line(each)}: " for each in files[:1])
    lines = [
        f"  - {describe_error(each, each.file if len(files) > 1 else None)}" for each in errors
    ]
    return "\n".join([f"ppdm: {where}{len(errors)} errors", *lines])


def describe_error(error: PpdmError, file: str | None) -> str:
    """Return the sentence of one error after its file and column, unless it names them."""
    message = str(error)
    column = f"column '{error.column}'" if error.column else None
    where = [part for part in (file, column) if part and part.lower() not in message.lower()]
    return show_line(": ".join([*where, message]))
