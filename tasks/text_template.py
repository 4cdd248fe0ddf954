"""Texts from jinja2 templates: the card of a release, the draft of a release file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def render_text(template: Path, filters: dict[str, Callable[..., str]], **values: Any) -> str:
    """Return the text of a template; values are written as they are, an unknown name raises."""
    import jinja2

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= filters
    return environment.from_string(template.read_text(encoding="utf-8")).render(values)
