"""Frozen dataclasses as plain JSON values and back, driven by their type hints.

Tuples become lists, arrays nested lists, enum members their names, and numbers that are not finite
text, because JSON has no infinity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Return the value as dicts, lists, texts, numbers, booleans and None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, np.ndarray | np.generic):
        return to_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, Mapping):
        return {str(name): to_json(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(each) for each in value]
    return value


def from_json(kind: type[T], data: Any) -> T:
    """Return the value of type ``kind`` that ``to_json`` turned into ``data``."""
    found: T = _decode(kind, data)
    return found


def _decode(hint: Any, data: Any) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _decode_union(args, data)
    if origin is tuple:
        kinds = [args[0]] * len(data) if args[1:] == (...,) else args
        return tuple(_decode(kind, each) for kind, each in zip(kinds, data, strict=True))
    if origin is np.ndarray:
        (scalar,) = get_args(args[1])
        array = np.array(data, dtype=scalar)
        array.flags.writeable = False  # as the other fields of a frozen dataclass
        return array
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {name: _decode(args[1], each) for name, each in data.items()}
    if not isinstance(hint, type):  # Any or a Literal
        return data
    if is_dataclass(hint):
        hints = _field_hints(hint)
        return hint(**{name: _decode(hints[name], each) for name, each in data.items()})
    if issubclass(hint, Enum):
        return hint[data]
    return float(data) if hint is float else data


def _decode_union(kinds: tuple[Any, ...], data: Any) -> Any:
    """Decode a value that may be None; of several other types, texts and numbers stay as is."""
    others = [kind for kind in kinds if kind is not NoneType]
    if data is None or len(others) > 1:
        return data
    return _decode(others[0], data)


@cache
def _field_hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
