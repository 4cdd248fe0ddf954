"""One builder of attackers' views, and of what an attacker holds, for the tests of attacks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ppdm_core.model.attacker import AttackerView, KnownRows, RecordSet
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Numeric, Schema

COPY = PublicParameters("copy", "original", ())


def make_view(
    Y: np.ndarray,
    *,
    d: int | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    schema: Schema | None = None,
    label: np.ndarray | None = None,
    public: PublicParameters = COPY,
    epsilon: float = 0.1,
    **fields: Any,
) -> AttackerView:
    """Return a view of the released rows ``Y``; ``fields`` is what else the attacker holds.

    Without a schema there are ``d`` numeric columns (by default as many as released ones) with
    these bounds. Without labels all rows have the same one.
    """
    columns = make_columns(Y.shape[1] if d is None else d, bounds) if schema is None else schema
    label = np.zeros(len(Y), dtype=np.int32) if label is None else label
    return AttackerView(Y, label, public, columns, epsilon, **fields)


def make_columns(d: int, bounds: tuple[float, float] = (0.0, 1.0)) -> Schema:
    return Schema(tuple(Numeric(f"x{j}", *bounds) for j in range(d)))


def make_public(
    Y: np.ndarray, method: str = "rotation", space: Any = "rotated", **fields: Any
) -> PublicParameters:
    """Return public parameters that name the released columns y0, y1, ..."""
    return PublicParameters(method, space, tuple(f"y{j}" for j in range(Y.shape[1])), **fields)


def make_noise_public(b: float, d: int, law: Any = "laplace") -> PublicParameters:
    """Return public parameters of noise of scale ``b`` on ``d`` original columns."""
    return PublicParameters("noise", "original", (), np.full(d, 0.5), np.eye(d), law, np.full(d, b))


def make_records(
    X: np.ndarray, C: np.ndarray | None = None, label: np.ndarray | None = None
) -> RecordSet:
    """Return records without categories and with one label, unless these are given."""
    return RecordSet(
        X,
        np.zeros((len(X), 0), dtype=np.int32) if C is None else C,
        np.zeros(len(X), dtype=np.int32) if label is None else label,
    )


def make_known(X: np.ndarray, rows: Any) -> KnownRows:
    """Return the records at these positions, whose rows are at the same positions."""
    return KnownRows(X[rows], np.asarray(rows))
