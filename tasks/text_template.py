"""Texts from jinja2 templates: the card of a release, the draft of a release file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def render_text(
    template: Path,
    filters: dict[str, Callable[..., str]],
    finalize: Callable[[Any], Any] | None = None,
    **values: Any,
) -> str:
    """Return the text of a template; an unknown name raises.

    Every value is written as ``finalize`` returns it, or as it is.
    """
    import jinja2

    environment = jinja2.Environment(
        finalize=finalize,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= filters
    return environment.from_string(template.read_text(encoding="utf-8")).render(values)
