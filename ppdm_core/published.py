"""A published release for its recipients; everything is read from ``manifest.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput, NotApplicable
from ppdm_core.model.release import PublicParameters, Response
from ppdm_core.model.schema import Categorical
from ppdm_core.numerics.linear_map import has_map, project
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

    def rows(self, Y: ArrayLike) -> Floats:
        """Return released values, columns as in ``public.columns``, in the space of ``queries``."""
        values = _check_table(Y, self.public.columns)
        if self.public.space != "original":
            return values
        scaled = (values - self.scaling.offset) / self.scaling.unit
        return project(self.public, scaled) if has_map(self.public) else scaled

    def queries(self, X: ArrayLike) -> Floats:
        """Return original records, in original units with columns as in ``numeric``, as queries.

        With min-max scaling, values outside the declared bounds are clamped to them, as in the
        release.
        """
        scaled = (_check_table(X, self.numeric) - self.scaling.offset) / self.scaling.unit
        if self.scaling.kind == "minmax":
            scaled = np.clip(scaled, 0.0, 1.0)
        if has_map(self.public):
            return project(self.public, scaled)
        if self.public.space != "original":
            raise NotApplicable(
                f"{self.public.method} publishes no map: ask the steward to map your records."
            )
        return scaled


def _check_table(values: ArrayLike, names: tuple[str, ...]) -> Floats:
    """Return the values as an array, or raise if it does not have one column per name."""
    table = np.asarray(values, dtype=np.float64)
    if table.shape[-1:] != (len(names),):
        raise BadInput(
            f"A table of shape {table.shape} does not have the {len(names)} columns "
            f"{names[0]} to {names[-1]}.",
            remedy="Select them by name, in this order.",
        )
    return table


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
