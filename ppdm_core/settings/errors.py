"""Error messages for release and policy files, made from the errors of pydantic."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from ppdm_core.model.errors import BadInput, ErrorList, join_errors

P = ParamSpec("P")
T = TypeVar("T")

ROLE_REMEDY = 'Declare role = "identifier", "label", "feature" or "exclude".'
RELEASE_FILE = "release file"  # how messages name the file
MAX_QUOTE_CHARACTERS = 60
MAX_SUGGESTIONS = 20
COLLECTED = "bad_input"  # type of a problem that pydantic collects for us


def suggest_name(word: str, known: Iterable[str]) -> str:
    """Return a remedy that names the most similar known word, or all of them."""
    known = sorted(known)
    similar = find_similar(word, known)
    if similar:
        return f"Did you mean '{similar[0]}'?"
    if len(known) > MAX_SUGGESTIONS:
        return "Check its spelling."
    return "Known: " + ", ".join(f"'{name}'" for name in known) + "."


def find_similar(word: str, known: Sequence[str]) -> list[str]:
    """Return the most similar known word, or nothing."""
    return difflib.get_close_matches(word, known, n=1, cutoff=0.5)


def check_known(kind: str, name: str, known: Collection[str]) -> None:
    """Raise BadInput with the most similar name if a name is unknown."""
    if name not in known:
        raise BadInput(f"Unknown {kind} '{name}'.", remedy=suggest_name(name, known))


def report_as_value_error(check: Callable[P, T]) -> Callable[P, T]:
    """Let pydantic collect the bad input that a validator raises with that of other sections."""

    @wraps(check)
    def run(*args: P.args, **named: P.kwargs) -> T:
        try:
            return check(*args, **named)
        except BadInput as error:
            context = {"text": str(error), "problem": error}
            raise PydanticCustomError(COLLECTED, "{text}", context) from None

    return run


def find_problems(
    error: ValidationError, models: Mapping[str, type[BaseModel]], kind: str = RELEASE_FILE
) -> BadInput:
    """Return all problems as one BadInput; ``models`` maps "" and each section to its model."""
    problems = error.errors(include_url=False)
    # A mistyped key also makes the right one missing, so unknown keys are reported first.
    problems.sort(key=lambda each: each["type"] != "extra_forbidden")
    found, seen = ErrorList(), set()
    for problem in problems:
        if problem["type"] == COLLECTED:
            found.add(problem["ctx"]["problem"])
            continue
        location = [str(part) for part in problem["loc"]]
        place, keys, _ = _find_place(location, kind)
        where = (place, *keys[:1])  # a key that may have several types has a problem for each
        if where not in seen and not _is_mistyped(problem, problems):
            seen.add(where)
            found.add(_describe_problem(problem, location, models, kind))
    return join_errors(found.found)


def _is_mistyped(problem: Any, problems: Sequence[Any]) -> bool:
    """Return whether a key is missing because an unknown one is similar to it."""
    *section, key = problem["loc"]
    unknown = [
        str(each["loc"][-1])
        for each in problems
        if each["type"] == "extra_forbidden" and list(each["loc"][:-1]) == section
    ]
    return problem["type"] == "missing" and bool(find_similar(str(key), unknown))


def _describe_problem(
    problem: Any, location: list[str], models: Mapping[str, type[BaseModel]], kind: str
) -> BadInput:
    """Return one problem that pydantic found as BadInput."""
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
