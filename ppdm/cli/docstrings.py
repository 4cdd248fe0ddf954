"""The docstrings of registered classes: their titled parts and the meanings of parameters."""

from __future__ import annotations

import inspect
import re

_TITLE = re.compile(
    r"^\**(Parameters|Public|Broken by|Guarantee|References)\**:\s*", flags=re.MULTILINE
)
_PARAMETER = re.compile(r"^``(\w+)``:\s*", flags=re.MULTILINE)


def split_docstring(cls: type) -> dict[str, str]:
    """Return the parts of a class docstring by title; the part before the first title has ""."""
    before, *titled = _TITLE.split(inspect.cleandoc(cls.__doc__ or ""))
    return {"": before, **dict(zip(titled[::2], titled[1::2], strict=True))}


def read_parameter_meanings(cls: type) -> dict[str, str]:
    """Return the meaning of each parameter, from the class and its base classes."""
    found: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        _, *named = _PARAMETER.split(split_docstring(owner).get("Parameters", ""))
        found |= dict(zip(named[::2], map(join_lines, named[1::2]), strict=True))
    return found


def join_lines(text: str) -> str:
    """Return a text on one line, with single backticks."""
    return " ".join(text.replace("``", "`").split())


def split_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, each on one line."""
    return [join_lines(part) for part in re.split(r"\n\s*\n", text.strip())]
