"""DCT-F: cosine coefficients of records, the weak ones pruned, the others in secret order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ppdm_core.model.arrays import Floats, Ints
from ppdm_core.model.errors import BadInput
from ppdm_core.model.parameter_checks import (
    check_choice,
    check_positive,
    is_number,
    parameter_error,
)
from ppdm_core.model.release import Guarantee, PublicParameters, Released
from ppdm_core.model.rows import Block, Rows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.amplification import make_empirical_guarantee
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.rounding import round_outward
from ppdm_core.sanitizers._column_parts import ColumnPart
from ppdm_core.sanitizers._fuzzy_selection import (
    EnergyBounds,
    Programme,
    PruningChoice,
    Transform,
    choose_pruning,
    compute_distortion,
    compute_energy_bounds,
)
from ppdm_core.sanitizers._sanitizer import CommonFit, Direction, Fitted, Sanitizer
from ppdm_core.sanitizers._sweep import Axes, SweepScope

ENERGY_SHARES = ((0.2, 0.3), (0.5, 0.5), (0.05, 0.1), (0.3, 0.5), (0.1, 0.2))  # that a tune tries
ORDER = "order"  # key of a fit: the coefficient of each released column, agreed among sites
KEPT_FROM_RECORDS = "Which coefficients are kept is learned from private records."
RESOLUTION = 2.0**-36  # share of the largest possible value; far coarser than rounding errors


@dataclass(frozen=True, kw_only=True)
class DctFuzzy(Sanitizer):
    """Takes the cosine transform of every record and releases only some of its coefficients.

    The records' columns are read as a sequence. The pruned coefficients are the same for all
    records: as many as possible of those that hold little of any record's energy (the sum of its
    squares), chosen by fuzzy programming and solved exactly. The kept ones are released in a
    secret order of columns. Distances can only shrink. Energy is not distance: what all records
    have in common counts as energy and is in no distance, and both the order and the units of the
    columns change which coefficients are kept.

    **Parameters**:
    ``b``: share of a record's energy whose loss is fully accepted.
    ``p``: further share that may be lost, preferably little; b + p is above 0 and at most 1.
    ``selection``: "fuzzy", or "random": the same number of coefficients, drawn with the key.
    ``centre``: true to measure energy from the middle of the columns' bounds, not from zero.
    With scale = "zscore", zero is near the mean already.
    ``order``: names of all features in the order of the sequence; by default that of the file.
    ``others``: the features in ``order`` that other parties hold of the same persons, with whom
    the table is released (`ppdm site`); needs scale = "minmax".
    ``noise_scale``: with ``others``, scale of the Laplace noise that each party adds to its own
    part of each coefficient, in units of a column scaled to 0 and 1; by default no noise.

    **Public**: the transform and the order of its input; the number of kept coefficients; the
    rounding; moments of the distance distortion. Not which ones are kept, nor their order.
    **Broken by**: ``column_order``: the coefficients of a known record are in its row, so that one
    such record reveals their order, and the inverse transform gives all records, except for what
    the pruned coefficients hold; with few columns a sample of persons reveals the order, too.
    ``known_pairs`` and ``trilateration`` need a few more known records than kept coefficients,
    ``known_sample_pca`` a sample with persons who are in the release. Then ``record_linkage``
    identifies rows, ``membership`` decides who is in the release, and ``attribute_inference``
    reads their values.
    **Guarantee**: none without noise. Given the key, a row is then a function of its record. With
    ``noise_scale``: bounded amplification for component, attribute and record of the columns of
    each party, given which coefficients are kept; it holds against all other parties together.
    **References**: Mukherjee, Chen, Gangopadhyay, "A fuzzy programming approach for data
    reduction and privacy in distance-based mining" (2008), sections 3.1 to 3.3 and 3.5; energy
    shares are bounded, not coefficients as in its figure 3.
    """

    name: ClassVar[str] = "dct_fuzzy"
    accepts: ClassVar[frozenset[str]] = frozenset({"numeric"})
    row_aligned: ClassVar[bool] = True
    common_fit: ClassVar[CommonFit | None] = "bounds"
    min_features: ClassVar[int] = 2  # one coefficient is always kept
    example: ClassVar[Mapping[str, Any]] = {"b": 0.1, "p": 0.2}
    more_private: ClassVar[Mapping[str, Direction]] = {
        "noise_scale": "raise",
        "b": "raise",
        "p": "raise",
    }

    b: float = 0.1
    p: float = 0.2
    selection: str = "fuzzy"
    centre: bool = False
    order: Sequence[str] | None = None
    others: Sequence[str] | None = None
    noise_scale: float | None = None

    @classmethod
    def list_axes(cls, scope: SweepScope, given: Mapping[str, Any]) -> Axes:
        return {"energy": [{"b": b, "p": p} for b, p in ENERGY_SHARES]}

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("b", "p"):
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value <= 1:
                raise parameter_error(self, name, "a share from 0 to 1", value)
        if not 0 < self.b + self.p <= 1:
            raise parameter_error(self, "p", "such that b + p is above 0 and at most 1", self.p)
        check_choice(self, "selection", ("fuzzy", "random"))
        if not isinstance(self.centre, bool):
            raise parameter_error(self, "centre", "true or false", self.centre)
        if self.order is not None and not is_list_of_names(self.order):
            raise parameter_error(self, "order", "a list of different column names", self.order)
        if self.others is not None:
            self._check_others(self.others)
        if self.noise_scale is not None:
            check_positive(self, "noise_scale", self.noise_scale)
            if self.others is None:
                wanted = "left out unless 'others' names the columns of other parties"
                raise parameter_error(self, "noise_scale", wanted, self.noise_scale)

    def _check_others(self, others: Sequence[str]) -> None:
        if others and not is_list_of_names(others):
            raise parameter_error(self, "others", "a list of different column names", others)
        if self.order is None or not set(others) <= set(self.order):
            raise parameter_error(self, "others", "a list of names that 'order' lists, too", others)
        if self.scale != "minmax" or self.selection != "fuzzy":
            wanted = 'used with scale = "minmax" and selection = "fuzzy"'
            raise parameter_error(self, "others", wanted, others)

    @property
    def learns(self) -> bool:
        return True

    def check_features(self, d: int) -> None:
        super().check_features(d)
        if self.order is not None and len(self.order) != d + len(self.others or ()):
            wanted = f"a list of all {d} features"
            if self.others is not None:
                wanted = f"a list of the {d} features of this party and all columns in 'others'"
            raise parameter_error(self, "order", wanted, self.order)

    def fit_parameters(self) -> dict[str, Any]:
        order = None if self.order is None else list(self.order)
        own = {"b": self.b, "p": self.p, "selection": self.selection, "centre": self.centre}
        others = {} if self.others is None else {"others": list(self.others)}
        return {**super().fit_parameters(), **own, "order": order, **others}

    def fit(self, rows: Rows) -> Fitted:
        self.check_features(len(rows.schema.numeric))
        if self.others is not None:
            raise BadInput(
                "'others' names columns of other parties, so that no party can release alone.",
                file="[sanitizer]",
                remedy="Release together with them: ppdm site --help. Or remove 'others'.",
            )
        if rows.n < 2:
            raise BadInput(
                f"Method '{self.name}' needs at least 2 records to choose coefficients. Got "
                f"{rows.n}.",
                remedy="Release more records.",
            )
        transform = self.make_transform(rows.schema)
        bounds = compute_energy_bounds(rows, transform)
        pruned = self.choose_pruned(bounds).pruned
        is_random = self.selection == "random"
        mean, variance = compute_distortion(rows, transform, pruned, is_random=is_random)
        return {
            "kept": np.setdiff1d(np.arange(len(bounds.low)), pruned).tolist(),
            "without_energy": bounds.skipped,
            "distance_distortion_mean": round_outward(mean),
            "distance_distortion_variance": round_outward(variance),
        }

    def measure_bounds(self, rows: Rows) -> EnergyBounds:
        """Return the energy bounds of scaled rows, as a site sends them."""
        return compute_energy_bounds(rows, self.make_transform(rows.schema))

    def share_fit(self, schema: Schema, kept: list[int], skipped: int, secret: Noise) -> Fitted:
        """Return the fit of a site that releases together with others.

        ``kept`` was chosen from the bounds of all sites, ``skipped`` are its own records without
        energy, and the ``secret`` that all sites share gives the order of the columns.
        """
        fitted: dict[str, Any] = {"kept": kept, "without_energy": skipped}
        return {**fitted, ORDER: self._draw_columns(schema, secret, fitted).tolist()}

    def make_part(self, own: Sequence[str]) -> ColumnPart:
        """Return the columns of one party, given by name, among those of all parties."""
        assert self.order is not None
        numeric = tuple(Numeric(name, 0.0, 1.0) for name in self.order)  # by min-max scaling
        schema = Schema(numeric)
        transform = self.make_transform(schema)
        places = np.array([self.order.index(name) for name in own], dtype=np.int64)
        unit = compute_grid_step(transform.compute_reach(schema))
        return ColumnPart(schema, transform, places, unit, self.noise_scale)

    def make_transform(self, schema: Schema) -> Transform:
        """Return the transform of this order and origin."""
        names, d = schema.names, len(schema.numeric)
        origin = (schema.lows + schema.highs) / 2 if self.centre else np.zeros(d)
        if self.order is None:
            return Transform(np.arange(d), origin)
        if sorted(self.order) != sorted(names):
            raise parameter_error(self, "order", "a list of all features by name", self.order)
        return Transform(np.array([names.index(name) for name in self.order]), origin)

    def choose_pruned(self, bounds: EnergyBounds) -> PruningChoice:
        """Choose the coefficients to prune, given the bounds of all records, from any sites."""
        if bounds.count == 0:
            raise BadInput(
                "Every record is zero in all features, so there is no energy to keep.",
                remedy="Check the feature columns, or change 'centre'.",
            )
        found = choose_pruning(Programme(bounds.low, bounds.high - bounds.low, self.b, self.p))
        if found.loss_level == 0.0:
            raise parameter_error(
                self, "p", "larger: with b and p no coefficient can be pruned", self.p
            )
        return found

    def mechanism(self, schema: Schema, fitted: Fitted) -> list[Any]:
        if self.others is not None:
            noise = [] if self.noise_scale is None else [self.noise_scale]
            return [fitted[ORDER], list(self.order or ()), self.centre, *noise]
        transform = self.make_transform(schema)
        kept = fitted["kept"] if self.selection == "fuzzy" else len(fitted["kept"])
        shared = [fitted[ORDER]] if ORDER in fitted else []
        return [kept, transform.positions.tolist(), transform.origin.tolist(), *shared]

    def _draw_columns(self, schema: Schema, noise: Noise, fitted: Fitted) -> Ints:
        """Draw the secret: the coefficient of each released column.

        Sites that release together share it, so that their columns mean the same.
        """
        if ORDER in fitted:
            return np.array(fitted[ORDER], dtype=np.int64)
        rng = noise.generator("column order", self.fingerprint(schema, fitted))
        kept = np.array(fitted["kept"], dtype=np.int64)
        if self.selection == "random":
            return rng.permutation(len(schema.numeric))[: len(kept)]
        return rng.permutation(kept)

    def sanitize(self, rows: Rows, noise: Noise, fitted: Fitted) -> Released:
        schema = rows.schema
        self.check_features(len(schema.numeric))
        if self.others is not None:
            return self._sanitize_part(rows, noise, fitted)
        transform = self.make_transform(schema)
        columns = self._draw_columns(schema, noise, fitted)
        # One bound for all columns: separate bounds would reveal the coefficient of a column.
        reach = transform.compute_reach(schema)
        unit = compute_grid_step(reach)
        limit = reach + unit
        limits = np.tile([-limit, limit], (len(columns), 1))
        released = replace(schema, numeric=name_coefficients(limits))

        def step(block: Block) -> Block:
            Y = np.empty((block.n, len(columns)))
            for part, C in transform.iterate_slabs(block.X):
                # The default mode would write to "out" through a copy.
                np.take(C, columns, axis=1, out=Y[part], mode="clip")
                round_to_odd_steps(Y[part], unit)
            return replace(block, X=Y)

        moments = ("distance_distortion_mean", "distance_distortion_variance")
        return Released(
            rows=rows.map(step, released),
            public=PublicParameters(
                method=self.name,
                space="rotated",
                columns=released.names,
                centre=transform.origin if self.centre else None,
                grid=np.full(len(columns), unit / 2),
                preserves_distances=len(columns) == len(schema.numeric),
                facts={
                    "transform": "orthonormal DCT-II",
                    "transform_order": " ".join(map(str, (transform.positions + 1).tolist())),
                    # Sites that release together exchange no moments.
                    **{name: fitted[name] for name in moments if name in fitted},
                },
            ),
            atom=RESOLUTION,  # nothing is drawn: probability that a step contains a given number
            fit_counts={"records without energy at the fit": fitted["without_energy"]},
        )

    def _sanitize_part(self, rows: Rows, noise: Noise, fitted: Fitted) -> Released:
        """Return this party's part of the coefficients, as all other parties can see it.

        They know the order of the columns, their own parts and their own noise, so that the map of
        this part is public to them.
        """
        schema, columns = rows.schema, fitted[ORDER]
        part, fingerprint = self.make_part(schema.names), self.fingerprint(schema, fitted)
        mechanism = None if self.noise_scale is None else part.make_mechanism(columns)
        added = None if mechanism is None else mechanism.make_noise(self, "noise_scale")
        limit = part.transform.compute_reach(part.schema) + part.unit
        reached = np.tile([-limit, limit], (len(columns), 1))
        if added is not None:
            reached = added.limits * part.step
        released = replace(schema, numeric=name_coefficients(reached))

        def step(block: Block) -> Block:
            T = part.compute_coefficients(block.X)[:, columns]
            if added is None:
                round_to_odd_steps(T, part.unit)
                return replace(block, X=T)
            bits = noise.bits(block, self.name, len(columns), fingerprint)
            return replace(block, X=added.add(T, bits))

        origin, loadings = part.find_map(columns)
        public = PublicParameters(
            method=self.name,
            space="components",
            columns=released.names,
            centre=origin,
            loadings=loadings,
            grid=np.full(len(columns), part.step * (1 - part.offset)),
            facts=part.describe(),
        )
        if mechanism is not None:
            law = mechanism.distribution.name
            public = replace(public, law=law, scales=mechanism.b, ranges=reached)
        return Released(
            rows=rows.map(step, released),
            public=public,
            atom=RESOLUTION if added is None else added.atom,
            fit_counts={"records without energy at the fit": fitted["without_energy"]},
        )

    def leaked(self, schema: Schema, noise: Noise, fitted: Fitted) -> tuple[Floats, Floats]:
        if self.others is not None:
            return self.make_part(schema.names).find_map(fitted[ORDER])
        transform = self.make_transform(schema)
        basis = transform.compute_coefficients(
            transform.origin + np.eye(len(schema.numeric))
        )  # (d, d)
        return transform.origin, basis[:, self._draw_columns(schema, noise, fitted)]

    def guarantee(self, schema: Schema, fitted: Fitted) -> Guarantee:
        if self.noise_scale is not None:
            part = self.make_part(schema.names)
            return self.bound_parts(part.make_mechanism(fitted[ORDER]).compute_ln_gammas(), schema)
        return make_empirical_guarantee(
            "Pruned coefficients and a secret order of columns give no worst-case bound: one known "
            "record can reveal the order.",
            KEPT_FROM_RECORDS,
            *self.list_weaker_promises(schema),
        )

    def bound_parts(self, ln_gammas: tuple[float, float, float], schema: Schema) -> Guarantee:
        """Return the guarantee of parts with noise and these figures."""
        return Guarantee(
            "bounded_given_basis",
            *ln_gammas,
            assumptions=(
                "One release, with noise that no outsider can predict.",
                "Each party adds noise of its own, and the bound of its columns uses this noise "
                "alone: it holds against all other parties together.",
                KEPT_FROM_RECORDS,
                *self.list_weaker_promises(schema),
            ),
        )


def name_coefficients(ranges: Floats) -> tuple[Numeric, ...]:
    """Return released columns with these ranges."""
    numbered = enumerate(ranges.tolist(), start=1)
    return tuple(Numeric(f"coefficient_{i}", low, high) for i, (low, high) in numbered)


def is_list_of_names(value: Any) -> bool:
    """Return whether the value is a list of different names."""
    is_list = isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
    return is_list and len(set(value)) == len(value) > 0


def compute_grid_step(reach: float) -> float:
    """Return the grid step, a power of two, so that multiplying by it is exact."""
    return math.ldexp(RESOLUTION, math.frexp(reach)[1] - 1)


def round_to_odd_steps(Y: Floats, step: float) -> None:
    """Round in place, so that low bits do not depend on the machine, and add half a step.

    A coefficient of integers can be an integer itself (the first of 16 columns is a quarter of
    their sum). Half a step off, it cannot be mistaken for an original value.
    """
    Y *= 1 / step
    np.rint(Y, out=Y)
    Y += 0.5
    Y *= step
