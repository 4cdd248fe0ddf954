"""Kernel density resampling: new rows around randomly drawn records of each class."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.arrays import Floats, Ints, Keys
from ppdm_core.model.errors import BadInput
from ppdm_core.model.parameter_checks import check_choice, check_share, is_count, parameter_error
from ppdm_core.model.release import Guarantee, PublicParameters, Released
from ppdm_core.model.rows import Block, Rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.amplification import make_empirical_guarantee
from ppdm_core.numerics.noise import Noise, encode_numbers
from ppdm_core.numerics.scaling import check_widths
from ppdm_core.sanitizers import _resampling as resampling
from ppdm_core.sanitizers._sanitizer import (
    CommonFit,
    Direction,
    Fitted,
    Part,
    Sanitizer,
    encode_codes,
)
from ppdm_core.sanitizers._sweep import Axes, SweepScope

FLOORS = (0.1, 0.4, 0.2, 0.05, 0.02)  # that a tune tries
MAX_ROWS_PER_RECORD = 10  # more released rows per record reveal its position


@dataclass(frozen=True, kw_only=True)
class KdeResample(Sanitizer):
    """Draws records with replacement and moves each draw by random steps of bounded width.

    This samples from a kernel density estimate with an Epanechnikov kernel. It is done within
    each class, because otherwise labels would not match their rows; classes keep their shares. A
    released row belongs to no record: some records are drawn several times, about a third never.
    The variance of rows exceeds that of records by h^2 / 5 in each column. If several sites hold
    records, each runs its own release, and recipients combine the rows.

    **Parameters**:
    ``rows``: number of released rows; by default the number of records.
    ``bandwidth``: the largest move of a draw: "paper" (the normal reference rule), "corrected"
    (the rule for this kernel, about 2.2 times as far) or "floor" (corrected, and never below
    ``floor``).
    ``floor``: smallest bandwidth for "floor", as a share of the range between a column's bounds.
    ``clip``: whether values outside their bounds are moved to the bounds.
    ``integers``: columns of integers, which are rounded. A value that moves by less than one half
    is then released unchanged.
    ``lonely``: treatment of a class of one record, or of equal ones: "refuse", or "merge" (it
    uses the bandwidths of all records together; its label still identifies its rows).

    **Public**: the rule and the kernel, not the bandwidths. They can be estimated from the rows.
    **Broken by**: ``source_record``: every row lies within the bandwidths of its record, and with
    more than a few columns of no other record, so that the source of a row is often certain,
    especially of an outlier; ``record_linkage`` in the other direction. ``kernel_support`` and
    ``membership``: if a known record is far from all rows, it was not drawn.
    **Guarantee**: none. Bounded steps exclude most records as the source: gamma is infinite. A
    column that is constant within a class is released unchanged (counted), except with "floor".
    **References**: Tan, Ng, "Privacy-preserving sharing of horizontally-distributed private data
    for constructing accurate classifiers" (2007), eq. 16. Its rule is that of a Gaussian
    kernel, hence "corrected".
    """

    name: ClassVar[str] = "kde_resample"
    accepts: ClassVar[frozenset[str]] = frozenset({"numeric"})
    row_aligned: ClassVar[bool] = False
    common_fit: ClassVar[CommonFit | None] = "own"
    example: ClassVar[Mapping[str, Any]] = {"bandwidth": "corrected"}
    more_private: ClassVar[Mapping[str, Direction]] = {"floor": "raise"}

    rows: int | None = None
    bandwidth: str = "corrected"
    floor: float | None = None
    clip: bool = True
    integers: Sequence[str] | None = None
    lonely: str = "refuse"

    @classmethod
    def list_axes(cls, scope: SweepScope, given: Mapping[str, Any]) -> Axes:
        floors = [{"bandwidth": "floor", "floor": floor} for floor in FLOORS]
        return {"bandwidth": [*floors, {"bandwidth": "corrected", "floor": None}]}

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "bandwidth", ("paper", "corrected", "floor"))
        check_choice(self, "lonely", ("refuse", "merge"))
        if (self.bandwidth == "floor") != (self.floor is not None):
            raise parameter_error(
                self, "floor", 'given exactly when bandwidth = "floor"', self.floor
            )
        if self.floor is not None:
            check_share(self, "floor", self.floor)
        if self.rows is not None and not is_count(self.rows):
            raise parameter_error(self, "rows", "a count of at least 1", self.rows)
        if not isinstance(self.clip, bool):
            raise parameter_error(self, "clip", "true or false", self.clip)
        names = () if self.integers is None else self.integers
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise parameter_error(self, "integers", "a list of names of columns", names)

    @property
    def keeps_columns(self) -> bool:
        return True

    @property
    def learns(self) -> bool:
        return True

    def fit(self, rows: Rows) -> Fitted:
        """Return counts and deviations by class (label -1 first), then those of all records."""
        counts, squares = resampling.append_total(resampling.compute_class_moments(rows))
        if counts[-1] < 2:
            raise BadInput(
                f"Bandwidths need at least 2 records; {counts[-1]} were left for them.",
                remedy="Release more records.",
            )
        deviations = np.sqrt(squares / np.maximum(counts - 1, 1)[:, None])
        deviations[deviations < resampling.compute_grid_steps(rows.schema)] = 0.0  # rounding error
        return {
            "counts": counts.tolist(),
            "deviations": [[float(f"{v:.6g}") for v in line] for line in deviations.tolist()],
        }

    def compute_bandwidths(self, schema: Schema, fitted: Fitted) -> Floats:
        """Return bandwidths by class (label -1 first), (classes, d).

        A class of one record, or of equal records, gets the bandwidths of all records.
        """
        counts = np.array(fitted["counts"], dtype=np.float64)
        deviations = np.array(fitted["deviations"], dtype=np.float64)
        d = deviations.shape[1]
        h = deviations * normal_reference(np.maximum(counts, 1.0), d)[:, None]
        if self.bandwidth != "paper":
            h *= kernel_correction(d)
        if self.floor is not None:
            h = np.maximum(h, self.floor * schema.widths)
        h[find_lonely_classes(fitted)] = h[-1]
        return np.asarray(h[:-1])

    def mechanism(self, schema: Schema, fitted: Fitted) -> list[Any]:
        # Row count, clipping and rounding are not included: a second release with other settings
        # shows the same draws, and no more of them than the larger of the two.
        return [self.compute_bandwidths(schema, fitted).tolist()]

    def parts(self, schema: Schema, fitted: Fitted) -> tuple[Part, ...]:
        """Return one part; it includes the class, which determines the width of the kernel."""

        def consumed(block: Block) -> Keys:
            return np.concatenate(
                [encode_numbers(block.X), encode_codes(block.label[:, None])], axis=1
            )

        return (Part(self.fingerprint(schema, fitted), consumed, math.inf),)

    def sanitize(self, rows: Rows, noise: Noise, fitted: Fitted) -> Released:
        schema = rows.schema
        check_widths(schema.numeric)
        integers = resampling.IntegerColumns.from_names(self.integers or (), schema, fitted)
        g = resampling.compute_grid_steps(schema)  # (d,)
        H = self.compute_bandwidths(schema, fitted) / g  # (classes, d), in steps
        counts = resampling.count_by_class(rows)
        self._check_classes(fitted, counts, H)
        wanted = resampling.allocate_rows(self._count_rows(rows.n), counts)
        fingerprint = self.fingerprint(schema, fitted)
        sources = resampling.Sources(noise, self.name, fingerprint)
        until = sources.find_stop_times(rows, counts, wanted)

        def step(block: Block) -> Block:
            drawn = sources.copy_drawn(block, until)
            bits = noise.bits(drawn, self.name, len(g), fingerprint)
            T = np.rint(drawn.X / g) + resampling.draw_kernel_steps(bits, H[drawn.label + 1])
            if self.clip:
                T = np.clip(T, np.ceil(schema.lows / g), np.floor(schema.highs / g))
            return replace(drawn, X=integers.round_columns(T * g, self.clip) + 0.0)

        present = H[counts > 0]
        return Released(
            rows=rows.map(step, self._released_schema(schema)),
            public=PublicParameters(
                method=self.name,
                space="original",
                columns=schema.names,
                centre=np.zeros(len(g)),  # the best estimate of a record is its row
                loadings=np.eye(len(g)),
                whole=tuple(self.integers or ()),
                facts=self._describe_kernel(),
            ),
            atom=self._compute_atom(present, integers.compute_steps(schema) / g),
            fit_counts={"columns constant within a class": int(np.count_nonzero(present < 1))},
        )

    def _count_rows(self, n: int) -> int:
        if self.rows is not None and self.rows > MAX_ROWS_PER_RECORD * n:
            limit = MAX_ROWS_PER_RECORD
            wanted = f"at most {limit} times the number of records, {limit * n}"
            raise parameter_error(self, "rows", wanted, self.rows)
        return self.rows or n

    def _check_classes(self, fitted: Fitted, counts: Ints, H: Floats) -> None:
        if np.any(H[counts > 0].max(axis=1) < 1):
            raise BadInput(
                "All records are equal, so they would be released unchanged.",
                remedy='Release other records, or set bandwidth = "floor" in [sanitizer].',
            )
        lonely = int(np.count_nonzero(find_lonely_classes(fitted)[:-1] & (counts > 0)))
        if lonely and self.lonely == "refuse":
            raise BadInput(
                f"{lonely} of the classes had one record, or equal ones, when bandwidths were "
                "learned; their records would be released unchanged.",
                remedy='Release more records of them, or set lonely = "merge" in [sanitizer].',
            )

    def _released_schema(self, schema: Schema) -> Schema:
        if self.clip:
            return schema
        # A bandwidth is less than two ranges; the bounds must not reveal its size.
        numeric = tuple(
            replace(column, low=column.low - 2 * column.width, high=column.high + 2 * column.width)
            for column in schema.numeric
        )
        return replace(schema, numeric=numeric)

    def _describe_kernel(self) -> dict[str, float | str]:
        floor = {} if self.floor is None else {"floor": float(self.floor)}
        return {"kernel": "epanechnikov", "bandwidth": self.bandwidth, **floor}

    def _compute_atom(self, H: Floats, spans: Floats) -> float:
        """Return the probability of the likeliest value: the middle one or, if clipped, a bound."""
        v = np.minimum(1.0, spans / np.maximum(2 * H, 1.0))
        middle = float(np.max(v * (3 - v**2) / 2))  # P(|e| <= v)
        return min((1 + middle) / 2 if self.clip else middle, 1 - 2.0**-53)

    def guarantee(self, schema: Schema, fitted: Fitted) -> Guarantee:
        return make_empirical_guarantee(
            "A kernel of bounded width has no worst-case bound: every released row lies within "
            "the bandwidths of the record that it was drawn from.",
            "Bandwidths come from the private data.",
            *self.list_weaker_promises(schema),
        )


def find_lonely_classes(fitted: Fitted) -> NDArray[np.bool_]:
    """Return a mask of classes without two different records; the last entry is all records."""
    deviations = np.array(fitted["deviations"], dtype=np.float64)
    return np.asarray(~deviations.any(axis=1))


def normal_reference(n: Floats, d: int) -> Floats:
    """Return the bandwidth in deviations, for a Gaussian kernel and normal data."""
    return np.asarray((4.0 / ((d + 2.0) * n)) ** (1.0 / (d + 4.0)))


def kernel_correction(d: int) -> float:
    """Return the ratio of Epanechnikov to Gaussian bandwidth for the same error."""
    roughness = 0.6 * 2.0 * math.sqrt(math.pi)  # ratio of the integrals of the squared kernels
    variance = 0.2
    return float((roughness**d / variance**2) ** (1.0 / (d + 4.0)))
