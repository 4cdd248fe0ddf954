"""Principal components with Laplace noise, or other noise with a worst-case bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.errors import BadInput
from ppdm_core.model.parameter_checks import (
    check_choice,
    check_positive,
    check_share,
    is_count,
    is_interval,
    is_number,
    parameter_error,
)
from ppdm_core.model.release import Guarantee, Released
from ppdm_core.model.rows import Block, Rows, add_counts, multiply_padded
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.grid_noise import grid_ranges
from ppdm_core.numerics.noise import Noise
from ppdm_core.numerics.noise_distributions import BOUNDED_DISTRIBUTIONS, find_distribution
from ppdm_core.sanitizers._basis import DRAWN, compute_box_ranges, fit_basis
from ppdm_core.sanitizers._mechanism import Mechanism, check_distribution, check_relative_scale
from ppdm_core.sanitizers._sanitizer import CommonFit, Direction, Fitted, Sanitizer
from ppdm_core.sanitizers._sweep import (
    Axes,
    SweepScope,
    list_counts,
    list_gammas,
    list_noise_scales,
)


@dataclass(frozen=True, kw_only=True)
class PcaLaplace(Sanitizer):
    """Projects records on their leading principal components and adds noise to each.

    **Parameters**:
    ``components``: number of components: a count, a share of the columns, or { variance = 0.9 }.
    ``b``: noise scale, in units set by ``noise_shape``. Either ``b`` or ``gamma`` must be given.
    ``law``: distribution of the noise: "laplace" (the paper), "logistic" (smooth; more noise for
    the same bound) or "student_t" (heavy tails, so that far outputs reveal less than near ones).
    ``nu``: degrees of freedom of "student_t", from 1 to 20.
    ``gamma``: bounds from which b is computed, such as { record = 1000 }; also attribute,
    component.
    ``noise_shape``: "isotropic" (one scale, b times the widest column) or "per_component" (the
    paper: b times the range of each score; scores are clipped to ranges that do not come from
    released records).
    ``basis``: what the components are fitted on: "sample" (records set aside, which no release
    draws, as long as there are such records), "file" (made elsewhere) or "private" (the released
    records themselves, a weaker guarantee).
    ``basis_share``: share of the records that "sample" sets aside.
    ``basis_file``: the file for basis = "file"; a path relative to the release file.
    ``score_ranges``: pairs [low, high] for "per_component", one per component; by default those of
    the basis.
    ``space``: "components", or "original" to map the noisy scores back.

    **Public**: centre, loadings, distribution and scales of the noise, grid, moments of the
    distance distortion in two digits (eq. 12 and 13, and the exact variance unless the basis is a
    file).
    **Broken by**: ``shrinkage`` and ``transform_inverse`` when the noise is small against the
    spread of the components; ``record_linkage``, ``membership`` and ``attribute_inference`` with
    several components of little noise.
    **Guarantee**: with a public basis (file) or one fitted on records that are never released
    (sample): bounded amplification for component, attribute and record, of one release. With a
    private basis the bound holds only given that basis; it does not cover what the basis reveals.
    The same holds if earlier releases drew records that had to be set aside (they are charged for
    it in the ledger), for bounds, z-scores or medians for empty cells from released records, and
    for rows that are dropped because of their values.
    **References**: Mukherjee, Banerjee, Chen, Gangopadhyay, "A privacy preserving technique for
    distance-based classification with worst case privacy guarantees" (2008), sections 4 and 5,
    eq. 12 and 13.
    """

    name: ClassVar[str] = "pca_laplace"
    accepts: ClassVar[frozenset[str]] = frozenset({"numeric"})
    is_usual: ClassVar[bool] = True
    row_aligned: ClassVar[bool] = True
    common_fit: ClassVar[CommonFit | None] = "moments"
    example: ClassVar[Mapping[str, Any]] = {"components": 2, "b": 0.3}
    more_private: ClassVar[Mapping[str, Direction]] = {
        "b": "raise",
        "gamma": "lower",
        "components": "lower",
    }

    components: int | float | Mapping[str, float] = 0.5
    b: float | None = None
    gamma: Mapping[str, float] | None = None
    noise_shape: str = "isotropic"
    basis: str = "sample"
    basis_share: float = 0.2
    basis_file: str | None = None
    score_ranges: Sequence[Sequence[float]] | None = None
    space: str = "components"
    law: str = "laplace"
    nu: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "noise_shape", ("isotropic", "per_component"))
        check_choice(self, "basis", ("sample", "file", "private"))
        check_choice(self, "space", ("components", "original"))
        check_share(self, "basis_share", self.basis_share)
        check_distribution(self, self.law, self.nu, BOUNDED_DISTRIBUTIONS)
        if not isinstance(self.basis_file, str if self.basis == "file" else type(None)):
            raise parameter_error(
                self, "basis_file", 'a path exactly when basis = "file"', self.basis_file
            )
        self._check_level()
        self._check_components()
        if self.score_ranges is not None:
            self._check_score_ranges(self.score_ranges)

    def _check_level(self) -> None:
        if (self.b is None) == (self.gamma is None):
            raise parameter_error(self, "b", "given, or else 'gamma', but not both", self.b)
        if self.b is not None:
            check_positive(self, "b", self.b)
            # Scores of columns from 0 to 1 have a range of at least 1; other columns may have less.
            if self.noise_shape == "per_component" or self.scale == "minmax":
                check_relative_scale(self, self.b)
        if self.gamma is not None:
            kinds = ("component", "attribute", "record")
            if not isinstance(self.gamma, Mapping) or not set(self.gamma) <= set(kinds):
                raise parameter_error(
                    self, "gamma", "a table such as { record = 1000 }", self.gamma
                )
            if not self.gamma or not all(is_number(g) and g > 1 for g in self.gamma.values()):
                raise parameter_error(
                    self, "gamma", "above 1 for " + " or ".join(kinds), self.gamma
                )

    def _check_components(self) -> None:
        wanted = "a count of at least 1, a share between 0 and 1, or { variance = share }"
        value = self.components
        if isinstance(value, Mapping):
            share = value.get("variance", 0)
            if set(value) != {"variance"} or not is_number(share) or not 0 < share <= 1:
                raise parameter_error(self, "components", wanted, value)
        elif not is_count(value) and not (isinstance(value, float) and 0 < value < 1):
            raise parameter_error(self, "components", wanted, value)

    def _check_score_ranges(self, ranges: Any) -> None:
        if self.noise_shape != "per_component":
            wanted = 'left out unless noise_shape = "per_component"'
            raise parameter_error(self, "score_ranges", wanted, ranges)
        if not isinstance(ranges, list | tuple) or not all(map(is_interval, ranges)):
            raise parameter_error(self, "score_ranges", "pairs [low, high] with low < high", ranges)

    @classmethod
    def list_axes(cls, scope: SweepScope, given: Mapping[str, Any]) -> Axes:
        noise = list_noise_changes(scope, given)
        basis = given.get("basis", cls.basis)
        bases = ["sample", "private"] if scope.has_ids else ["private"]
        return {
            "components": [{"components": count} for count in list_counts(scope.numeric)],
            "noise": noise or [{}],
            "basis": [{"basis": each} for each in bases] if basis != "file" else [{}],
        }

    @property
    def keeps_columns(self) -> bool:
        return self.space == "original"

    @property
    def set_aside(self) -> float:
        return self.basis_share if self.basis == "sample" else 0.0

    @property
    def learns(self) -> bool:
        return self.basis != "file" or super().learns

    @property
    def _clips(self) -> bool:
        """Whether scores are clipped to ranges that do not depend on released records."""
        declared = self.basis != "private" or self.score_ranges is not None
        return self.noise_shape == "per_component" and declared

    def check_features(self, d: int) -> None:
        super().check_features(d)
        if isinstance(self.components, int) and self.components > d:
            raise parameter_error(self, "components", f"an int in [1, {d}]", self.components)

    def fit_parameters(self) -> dict[str, Any]:
        share = self.basis_share if self.basis == "sample" else None
        components = self.components
        kept = dict(components) if isinstance(components, Mapping) else components
        return {**super().fit_parameters(), "basis": self.basis, "share": share, "components": kept}

    def fit(self, rows: Rows) -> Fitted:
        return fit_basis(rows, self.components)

    def _mechanism(self, schema: Schema, fitted: Fitted) -> Mechanism:
        loadings = np.array(fitted["loadings"], dtype=np.float64)  # (d, s)
        if loadings.shape[0] != len(schema.numeric):
            raise BadInput(
                f"The basis has {loadings.shape[0]} columns, the table {len(schema.numeric)}.",
                file=self.basis_file,
                remedy="Fit the basis on the same feature columns.",
            )
        if self.noise_shape == "isotropic":
            ranges = compute_box_ranges(loadings, schema.widths)
            units = np.full(loadings.shape[1], float(np.max(schema.widths)))
        else:
            ranges = self._score_ranges(fitted, loadings.shape[1])
            units = ranges[:, 1] - ranges[:, 0]
        distribution = find_distribution(self.law, self.nu)
        unit = Mechanism(distribution, loadings, schema.widths, units, ranges, self._clips)
        return unit.scale_noise(self.b if self.b is not None else self._solve(unit))

    def mechanism(self, schema: Schema, fitted: Fitted) -> list[Any]:
        m = self._mechanism(schema, fitted)
        arrays = (m.loadings, m.b, m.g, m.ranges)
        shape = [] if self.nu is None else [float(self.nu)]
        return [self.law, *shape, m.clips, *(array.tolist() for array in arrays)]

    def _score_ranges(self, fitted: Fitted, s: int) -> Floats:
        if self.score_ranges is None:
            if len(fitted["ranges"]) != s:
                raise BadInput(
                    f"The basis gives {len(fitted['ranges'])} score ranges for {s} components.",
                    file=self.basis_file,
                    remedy="Add 'ranges' to the basis file, or 'score_ranges' to [sanitizer].",
                )
            return np.array(fitted["ranges"], dtype=np.float64)
        if len(self.score_ranges) != s:
            wanted = f"{s} pairs [low, high], one per component"
            raise parameter_error(self, "score_ranges", wanted, self.score_ranges)
        return np.array(self.score_ranges, dtype=np.float64)

    def _solve(self, unit: Mechanism) -> float:
        assert self.gamma is not None
        b = unit.find_factor(self.gamma)
        if b is None:
            raise parameter_error(self, "gamma", "reachable", dict(self.gamma))
        return b

    def sanitize(self, rows: Rows, noise: Noise, fitted: Fitted) -> Released:
        schema = rows.schema
        m = self._mechanism(schema, fitted)
        added = m.make_noise(self)
        centre = (schema.lows + schema.highs) / 2
        back: Floats = np.linalg.pinv(m.loadings).astype(np.float64)  # (s, d)
        fingerprint = self.fingerprint(schema, fitted)
        reached = added.limits * m.g[:, None]  # (s, 2)
        released = self._released_schema(schema, reached)
        limits = (grid_ranges(m.ranges, m.g) * m.g[:, None]).T  # (2, s)
        has_ranges = self.noise_shape == "per_component"

        def step(block: Block) -> Block:
            T = multiply_padded(block.X - centre, m.loadings)
            counts = block.counts
            if has_ranges:
                clipped = int(np.count_nonzero((limits[0] > T) | (limits[1] < T)))
                counts = add_counts(counts, {"clipped scores": clipped})
            bits = noise.bits(block, self.name, len(m.b), fingerprint)
            Z = added.add(T, bits)
            Y = Z if self.space == "components" else centre + multiply_padded(Z, back)
            return replace(block, X=Y, counts=counts)

        return Released(
            rows=rows.map(step, released),
            public=m.describe_release(
                method=self.name,
                space=self.space,
                columns=released.names,
                centre=centre,
                ranges=reached,
                facts=m.describe_distortion(
                    np.array(fitted["variances"], dtype=np.float64),
                    fitted.get("dropped_variance"),  # not in a basis from a file
                ),
            ),
            atom=added.atom,
        )

    def _released_schema(self, schema: Schema, reached: Floats) -> Schema:
        if self.space == "original":
            return schema
        numeric = tuple(
            Numeric(f"component_{number}", low, high)
            for number, (low, high) in enumerate(reached.tolist(), start=1)
        )
        return replace(schema, numeric=numeric)

    def list_weaker_promises(self, schema: Schema) -> list[str]:
        promises = super().list_weaker_promises(schema)
        if self.basis == "private":
            promises.append(
                "The basis is fitted on the released records; what it reveals is not covered."
            )
            if self.noise_shape == "per_component" and self.score_ranges is None:
                promises.append("Valid only for two records within the realised score ranges.")
        return promises

    def guarantee(self, schema: Schema, fitted: Fitted) -> Guarantee:
        component, attribute, record = self._mechanism(schema, fitted).compute_ln_gammas()
        assumptions = ["One release, with noise that no outsider can predict."]
        weaker, is_drawn = self.list_weaker_promises(schema), bool(fitted.get(DRAWN))
        if self.basis == "sample":
            learned = "basis and z-scores were" if self.scale == "zscore" else "the basis was"
            assumptions.append(f"Does not cover the set-aside records that {learned} fitted on.")
        if is_drawn:
            weaker.append(
                "Earlier releases drew records that the basis was fitted on; what it reveals of "
                "them is not covered, and is charged to them as a draw without a bound."
            )
        return Guarantee(
            "bounded_given_basis" if weaker else "bounded",
            component,
            attribute,
            record,
            assumptions=(*assumptions, *weaker),
            without_bound=(self.name,) if is_drawn else (),
        )


def list_noise_changes(scope: SweepScope, given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return levels of noise: by gamma of a record, or by 'b' where no gamma is known."""
    if scope.gamma is None and given.get("b") is not None:
        return [{"b": b} for b in list_noise_scales(given["b"])]
    present = (given.get("gamma") or {}).get("record")
    return [{"b": None, "gamma": {"record": gamma}} for gamma in list_gammas(scope, present)]
