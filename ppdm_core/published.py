"""A published release for its recipients; everything is read from ``manifest.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.release import PublicParameters, Response
from ppdm_core.model.schema import Categorical
from ppdm_core.named_columns import read_numeric_columns
from ppdm_core.numerics.linear_map import find_score_ranges, has_map, project
from ppdm_core.numerics.scaling import Scaling

ARRAY_FIELDS = ("centre", "loadings", "scales", "grid", "ranges")  # of PublicParameters


@dataclass(frozen=True, eq=False)
class Published:
    """The public parameters of a release, and the map of a recipient's own records to its rows.

    With a published linear map, ``rows`` and ``queries`` are components: a row is the query of its
    record plus noise.
    """

    public: PublicParameters
    scaling: Scaling
    bounds: Floats  # (2, d) of the scaled columns: the method moved values beyond them to them
    features: tuple[str, ...]  # original columns, numeric ones first
    label: str | None

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Published:
        """Return what ``manifest``, the content of ``manifest.json``, describes."""
        scaling = Scaling.from_dict(manifest["scaling"])
        return cls(
            public=public_from_dict(manifest["public"]),
            scaling=scaling,
            bounds=read_scaled_bounds(scaling, manifest["scaling"]),
            features=tuple(manifest["features"]),
            label=manifest["label"],
        )

    @property
    def numeric(self) -> tuple[str, ...]:
        """The original numeric columns, in the order that ``queries`` expects."""
        return self.features[: len(self.scaling.offset)]

    def rows(self, Y: Any) -> Floats:
        """Return released values in the space of ``queries``.

        ``Y`` has the columns ``public.columns`` by name, or is an array of exactly these.
        """
        values = read_numeric_columns(Y, self.public.columns, self._list_other_columns())
        if self.public.space != "original":
            return values
        scaled = (values - self.scaling.offset) / self.scaling.unit
        return project(self.public, scaled) if has_map(self.public) else scaled

    def queries(self, X: Any) -> Floats:
        """Return original records, in original units, as queries.

        ``X`` has the columns ``numeric`` by name, in any order, or is an array of exactly these, in
        this order. Values beyond the bounds of a column, and scores beyond the range of a
        component, are moved to its end, as those of the released records were.
        """
        values = read_numeric_columns(X, self.numeric, self._list_other_columns())
        scaled = np.clip((values - self.scaling.offset) / self.scaling.unit, *self.bounds)
        if not has_map(self.public):
            if self.public.space != "original":
                raise NotApplicable(
                    f"{self.public.method} publishes no map: ask the steward to map your records."
                )
            return scaled
        scores, ranges = project(self.public, scaled), find_score_ranges(self.public)
        return scores if ranges is None else np.clip(scores, *ranges.T)

    def _list_other_columns(self) -> tuple[str, ...]:
        """Return the columns that a table of this release may also have."""
        return (*self.features, *self.public.names, *filter(None, [self.label]))


def read_scaled_bounds(scaling: Scaling, data: Mapping[str, Any]) -> Floats:
    """Return the scaled bounds of each column, (2, d), from the ``scaling`` table of a manifest.

    With min-max scaling they are 0 and 1, and the table does not repeat them.
    """
    if scaling.kind == "minmax":
        return np.array([np.zeros_like(scaling.offset), np.ones_like(scaling.offset)])
    bounds = np.array([data["low"], data["high"]], dtype=np.float64)
    return (bounds - scaling.offset) / scaling.unit


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
