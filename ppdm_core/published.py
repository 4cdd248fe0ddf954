"""A published release as its recipients see it: all that they need is in ``manifest.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput, NotApplicable
from ppdm_core.model.release import Public, Response
from ppdm_core.model.schema import Categorical
from ppdm_core.numerics.linear_map import has_map, project
from ppdm_core.numerics.scaling import Scaling

ARRAYS = ("centre", "loadings", "scales", "grid", "ranges")  # of Public


@dataclass(frozen=True, eq=False)
class Published:
    """What is published with a release, and how records of one's own come to be beside its rows.

    With a published map, ``rows`` and ``queries`` are components: a row is the query of its record
    plus noise.
    """

    public: Public
    scaling: Scaling
    features: tuple[str, ...]  # original columns, numeric ones first
    label: str | None

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Published:
        """``manifest``: the content of ``manifest.json``."""
        return cls(
            public=public_from_dict(manifest["public"]),
            scaling=Scaling.from_dict(manifest["scaling"]),
            features=tuple(manifest["features"]),
            label=manifest["label"],
        )

    @property
    def numeric(self) -> tuple[str, ...]:
        """The original numeric columns, in the order that ``queries`` takes them."""
        return self.features[: len(self.scaling.offset)]

    def rows(self, Y: ArrayLike) -> Floats:
        """Released values, columns as in ``public.columns``."""
        values = _table(Y, self.public.columns)
        if self.public.space != "original":
            return values
        scaled = (values - self.scaling.offset) / self.scaling.unit
        return project(self.public, scaled) if has_map(self.public) else scaled

    def queries(self, X: ArrayLike) -> Floats:
        """Original records in original units, columns as in ``numeric``.

        With min-max scaling, values beyond the declared bounds count as the bounds, as they did in
        the release.
        """
        scaled = (_table(X, self.numeric) - self.scaling.offset) / self.scaling.unit
        if self.scaling.kind == "minmax":
            scaled = np.clip(scaled, 0.0, 1.0)
        if has_map(self.public):
            return project(self.public, scaled)
        if self.public.space != "original":
            raise NotApplicable(
                f"{self.public.method} publishes no map: ask the steward to map your records."
            )
        return scaled


def _table(values: ArrayLike, names: tuple[str, ...]) -> Floats:
    table = np.asarray(values, dtype=np.float64)
    if table.shape[-1:] != (len(names),):
        raise BadInput(
            f"A table of shape {table.shape} does not have the {len(names)} columns "
            f"{names[0]} to {names[-1]}.",
            remedy="Select them by name, in this order.",
        )
    return table


def public_from_dict(data: Mapping[str, Any]) -> Public:
    arrays = {
        name: None if data[name] is None else np.array(data[name], dtype=np.float64)
        for name in ARRAYS
    }
    responses = tuple(
        Response(categorical(response["column"]), response["gamma"])
        for response in data.get("responses", ())
    )
    lists = {
        "columns": tuple(data["columns"]),
        "whole": tuple(data.get("whole", ())),
        "responses": responses,
    }
    return Public(**{**data, **arrays, **lists})


def categorical(column: Mapping[str, Any]) -> Categorical:
    return Categorical(**{**column, "categories": tuple(column["categories"])})
