"""A published release for its recipients; everything is read from ``manifest.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput, NotApplicable
from ppdm_core.model.release import PublicParameters, Response
from ppdm_core.model.schema import Categorical
from ppdm_core.numerics.linear_map import has_map, project
from ppdm_core.numerics.scaling import Scaling
from ppdm_core.two_tables.tables import has_names

ARRAY_FIELDS = ("centre", "loadings", "scales", "grid", "ranges")  # of PublicParameters


@dataclass(frozen=True, eq=False)
class Published:
    """The public parameters of a release, and the map of a recipient's own records to its rows.

    With a published linear map, ``rows`` and ``queries`` are components: a row is the query of its
    record plus noise.
    """

    public: PublicParameters
    scaling: Scaling
    features: tuple[str, ...]  # original columns, numeric ones first
    label: str | None

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Published:
        """Return what ``manifest``, the content of ``manifest.json``, describes."""
        return cls(
            public=public_from_dict(manifest["public"]),
            scaling=Scaling.from_dict(manifest["scaling"]),
            features=tuple(manifest["features"]),
            label=manifest["label"],
        )

    @property
    def numeric(self) -> tuple[str, ...]:
        """The original numeric columns, in the order that ``queries`` expects."""
        return self.features[: len(self.scaling.offset)]

    def rows(self, Y: Any) -> Floats:
        """Return released values in the space of ``queries``.

        ``Y`` is an array with columns as in ``public.columns``, or has them by name.
        """
        values = read_columns(Y, self.public.columns)
        if self.public.space != "original":
            return values
        scaled = (values - self.scaling.offset) / self.scaling.unit
        return project(self.public, scaled) if has_map(self.public) else scaled

    def queries(self, X: Any) -> Floats:
        """Return original records, in original units, as queries.

        ``X`` is an array with columns as in ``numeric``, or has them by name. With min-max scaling,
        values outside the declared bounds are clamped to them, as in the release.
        """
        scaled = (read_columns(X, self.numeric) - self.scaling.offset) / self.scaling.unit
        if self.scaling.kind == "minmax":
            scaled = np.clip(scaled, 0.0, 1.0)
        if has_map(self.public):
            return project(self.public, scaled)
        if self.public.space != "original":
            raise NotApplicable(
                f"{self.public.method} publishes no map: ask the steward to map your records."
            )
        return scaled


def read_columns(table: Any, names: tuple[str, ...]) -> Floats:
    """Return the columns of a data frame or dict by name, or an array that has only these."""
    if has_names(table):
        missing = [name for name in names if name not in table]
        if missing:
            raise BadInput(
                f"Column '{missing[0]}' is missing.", column=missing[0], remedy="Add the column."
            )
        columns = [np.asarray(table[name], dtype=np.float64) for name in names]
        return np.column_stack(columns) if columns else np.empty((count_rows(table), 0))
    values = np.asarray(table, dtype=np.float64)
    if values.shape[-1:] != (len(names),):
        raise BadInput(
            f"A table of shape {values.shape} does not have the {len(names)} columns "
            f"{names[0]} to {names[-1]}.",
            remedy="Select them by name, in this order.",
        )
    return values


def count_rows(table: Any) -> int:
    """Return the number of rows of a data frame or dict."""
    return len(next(iter(table.values()), ())) if isinstance(table, Mapping) else len(table)


def public_from_dict(data: Mapping[str, Any]) -> PublicParameters:
    """Return the public parameters that the ``public`` table of a manifest describes."""
    arrays = {
        name: None if data[name] is None else np.array(data[name], dtype=np.float64)
        for name in ARRAY_FIELDS
    }
    responses = tuple(
        Response(make_categorical(response["column"]), response["gamma"])
        for response in data.get("responses", ())
    )
    lists = {
        "columns": tuple(data["columns"]),
        "whole": tuple(data.get("whole", ())),
        "responses": responses,
    }
    return PublicParameters(**{**data, **arrays, **lists})


def make_categorical(column: Mapping[str, Any]) -> Categorical:
    """Return the categorical column that a table of a manifest describes."""
    return Categorical(**{**column, "categories": tuple(column["categories"])})
