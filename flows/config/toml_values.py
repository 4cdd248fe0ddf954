"""Keys and values as TOML text, for files and examples that programs write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def format_toml_key(name: str) -> str:
    """Return a key, quoted if it has to be."""
    import tomlkit

    return tomlkit.key(name).as_string()


def format_toml_value(value: Any) -> str:
    """Return a value; a mapping becomes an inline table."""
    import tomlkit

    if isinstance(value, Mapping):
        pairs = (f"{format_toml_key(key)} = {format_toml_value(value[key])}" for key in value)
        return f"{{ {', '.join(pairs)} }}"  # tomlkit would leave out the spaces
    return tomlkit.item(value).as_string()
