"""How a command ends: text or one JSON object on standard output, and an exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ppdm_core.model.errors import PpdmError


@dataclass(frozen=True)
class Answer:
    text: str
    payload: dict[str, Any] = field(default_factory=dict)
    exit_code: int = 0
    error: PpdmError | None = None  # a refusal is an answer with an error


def give(as_json: bool, work: Callable[[], Answer]) -> NoReturn:
    """Runs a command and leaves the process with its exit code."""
    from tasks.redaction import Shield

    try:
        with Shield():
            answer = work()
    except PpdmError as error:
        answer = Answer(in_words(error), exit_code=error.exit_code, error=error)
    if as_json:
        print(json.dumps(as_object(answer), ensure_ascii=False))
    elif answer.text:
        is_error = answer.error is not None and not answer.payload
        print(answer.text, file=sys.stderr if is_error else sys.stdout)
    sys.stdout.flush()
    raise SystemExit(answer.exit_code)


def as_object(answer: Answer) -> dict[str, Any]:
    return {
        "ok": answer.exit_code == 0,
        "exit_code": answer.exit_code,
        "error": answer.error.as_dict() if answer.error else None,
        **answer.payload,
    }


def in_words(error: PpdmError) -> str:
    """One line with file and column, each named once."""
    message = str(error)
    column = f"column '{error.column}'" if error.column else None
    where = [part for part in (error.file, column) if part and part.lower() not in message.lower()]
    return ": ".join(["ppdm", *where, message])
