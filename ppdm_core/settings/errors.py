"""Error messages for release and policy files, made from the errors of pydantic."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from ppdm_core.model.errors import BadInput

ROLE_REMEDY = 'Declare role = "identifier", "label", "feature" or "exclude".'
RELEASE_FILE = "release file"  # how messages name the file
MAX_QUOTE_CHARACTERS = 60
MAX_SUGGESTIONS = 20


def suggest_name(word: str, known: Iterable[str]) -> str:
    """Return a remedy that names the most similar known word, or all of them."""
    known = sorted(known)
    similar = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if similar:
        return f"Did you mean '{similar[0]}'?"
    if len(known) > MAX_SUGGESTIONS:
        return "Check its spelling."
    return "Known: " + ", ".join(f"'{name}'" for name in known) + "."


def check_known(kind: str, name: str, known: Collection[str]) -> None:
    """Raise BadInput with the most similar name if a name is unknown."""
    if name not in known:
        raise BadInput(f"Unknown {kind} '{name}'.", remedy=suggest_name(name, known))


def find_first_problem(
    error: ValidationError, models: Mapping[str, type[BaseModel]], kind: str = RELEASE_FILE
) -> BadInput:
    """Return the first problem as BadInput; ``models`` maps "" and each section to its model."""
    problems = error.errors(include_url=False, include_context=False)
    # A mistyped key also makes the right one missing, so unknown keys are reported first.
    problem = min(problems, key=lambda each: each["type"] != "extra_forbidden")
    location = [str(part) for part in problem["loc"]]
    place, keys, column = _find_place(location, kind)
    if problem["type"] == "extra_forbidden":
        model = models[location[0] if len(location) > 1 else ""]
        remedy = suggest_name(keys[-1], _list_fields(model).keys() - {"base"})
        return BadInput(f"Unknown key '{keys[-1]}' in {place}.", column=column, remedy=remedy)
    if problem["type"] == "missing":
        return _build_missing_error(location, place, keys, column)
    key = f"The '{keys[0]}' key of {place}" if keys else _capitalize(place)
    message = f"{key} {_rephrase(problem['msg'])}. Got {_quote(problem['input'])}."
    return BadInput(message, column=column, remedy=_describe_key(location, keys, models))


def _describe_key(
    location: list[str], keys: list[str], models: Mapping[str, type[BaseModel]]
) -> str:
    model = models.get(location[0] if len(location) > 1 else "")
    field = _list_fields(model).get(keys[0]) if model is not None and keys else None
    if field is None or field.description is None:
        return "Correct it."
    return f"Its meaning: {field.description}"


def _list_fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a model by their keys in the file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _find_place(location: list[str], kind: str) -> tuple[str, list[str], str | None]:
    """Return the section of the problem, its keys, and the column if it is about one."""
    if location[0] == "columns" and len(location) > 1:
        return f"column '{location[1]}'", location[2:], location[1]
    if location[0] == "limits" and len(location) > 1:
        return f"limit '{location[1]}'", location[2:], None
    if len(location) > 2 and location[1].isdecimal():  # an entry of a list such as [[expectations]]
        return f"entry {int(location[1]) + 1} of [[{location[0]}]]", location[2:], None
    if len(location) > 1:
        return f"[{location[0]}]", location[1:], None
    return f"the {kind}", location, None


def _build_missing_error(
    location: list[str], place: str, keys: list[str], column: str | None
) -> BadInput:
    if column is not None and keys == ["role"]:
        return BadInput(f"Column '{column}' has no role.", column=column, remedy=ROLE_REMEDY)
    if len(location) == 1 and location[0] != "format":
        return BadInput(f"The [{location[0]}] section is missing.", remedy=f"Add [{location[0]}].")
    return BadInput(
        f"The '{keys[0]}' key of {place} is missing.", column=column, remedy=f"Add '{keys[0]}'."
    )


def _rephrase(message: str) -> str:
    message = re.sub(r"^Value error, ", "", message)
    return re.sub(r"^\w+ should (be|have|match)", r"must \1", message)


def _quote(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_QUOTE_CHARACTERS else f"{text[:MAX_QUOTE_CHARACTERS]}..."


def _capitalize(place: str) -> str:
    return place[0].upper() + place[1:]
