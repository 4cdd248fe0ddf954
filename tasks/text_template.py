"""Texts from jinja2 templates: the card of a release, the draft of a release file."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jinja2


def render_text(
    template: Path,
    filters: dict[str, Callable[..., str]],
    finalize: Callable[[Any], Any] | None = None,
    **values: Any,
) -> str:
    """Return the text of a template; an unknown name raises.

    Every value is written as ``finalize`` returns it, or as it is.
    """
    return compile_template(template, tuple(filters.items()), finalize).render(values)


@cache
def compile_template(
    template: Path,
    filters: tuple[tuple[str, Callable[..., str]], ...],
    finalize: Callable[[Any], Any] | None,
) -> jinja2.Template:
    """Compile a template once per process, with the filters that it uses."""
    import jinja2

    environment = jinja2.Environment(
        finalize=finalize,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= dict(filters)
    return environment.from_string(template.read_text(encoding="utf-8"))
