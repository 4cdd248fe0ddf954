"""Checks of method parameters, with one error message for all."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ppdm_core.model.errors import BadInput


class BadParameter(BadInput):
    """A parameter that has a wrong value."""

    parameter = ""


def parameter_error(owner: object, name: str, wanted: str, got: object) -> BadParameter:
    """Return the error of a parameter that has a wrong value."""
    error = BadParameter(
        f"The '{name}' parameter of {type(owner).__name__} must be {wanted}. Got {got!r}.",
        column=None,
        remedy=f"Change '{name}' in the [sanitizer] section.",
    )
    error.parameter = name
    return error


def check_choice(owner: object, name: str, choices: tuple[str, ...]) -> None:
    """Check that a parameter is one of the allowed values."""
    value = getattr(owner, name)
    if value not in choices:
        raise parameter_error(owner, name, "one of " + ", ".join(choices), value)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number."""
    is_real = isinstance(value, int | float) and not isinstance(value, bool)
    return is_real and abs(value) <= sys.float_info.max  # whole numbers may be larger than that


def is_count(value: Any) -> bool:
    """Return whether a value is a whole number of at least 1."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_whole and bool(value >= 1)


def is_interval(value: Any) -> bool:
    """Return whether a value is a pair of ascending numbers."""
    is_pair = isinstance(value, list | tuple) and len(value) == 2 and all(map(is_number, value))
    return is_pair and bool(value[0] < value[1])


def check_count_or_share(owner: object, name: str, value: Any) -> None:
    """Check that a parameter is a count, or a share that is not a whole number."""
    if not is_count(value) and not (isinstance(value, float) and 0 < value < 1):
        wanted = "a count of at least 1, or a share between 0 and 1"
        raise parameter_error(owner, name, wanted, value)


def check_positive(owner: object, name: str, value: Any) -> None:
    """Check that a parameter is a positive number."""
    if not is_number(value) or value <= 0:
        raise parameter_error(owner, name, "a positive number", value)


def check_share(owner: object, name: str, value: Any, top: float = 1.0) -> None:
    """Check that a parameter is a share between 0 and 1."""
    if not is_number(value) or not 0 < value < top:
        raise parameter_error(owner, name, f"a share above 0 and below {top:g}", value)
