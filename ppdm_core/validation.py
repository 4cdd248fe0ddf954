"""One wording for parameters that cannot be."""

from __future__ import annotations

import math
from typing import Any

from ppdm_core.errors import BadInput


def reject(owner: object, name: str, wanted: str, got: object) -> BadInput:
    return BadInput(
        f"The '{name}' parameter of {type(owner).__name__} must be {wanted}. Got {got!r}.",
        column=None,
        remedy=f"Change '{name}' in the [sanitizer] section.",
    )


def check_choice(owner: object, name: str, choices: tuple[str, ...]) -> None:
    value = getattr(owner, name)
    if value not in choices:
        raise reject(owner, name, "one of " + ", ".join(choices), value)


def check_positive(owner: object, name: str, value: Any) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value <= 0:
        raise reject(owner, name, "a positive number", value)


def check_share(owner: object, name: str, value: Any, top: float = 1.0) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value < top:
        raise reject(owner, name, f"a share above 0 and below {top:g}", value)
