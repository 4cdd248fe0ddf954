"""What a metric is: three kinds, told apart by ``goal``, and the checks that they share."""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol

import numpy as np

from ppdm_core.errors import Defect
from ppdm_core.types import Codes, Floats, Ints, Public, Schema

Kind = Literal["privacy", "utility"]
Better = Literal["up", "down"]


class _Metric(Protocol):
    name: ClassVar[str]
    kind: ClassVar[Kind]
    better: ClassVar[Better]
    bounds: ClassVar[tuple[float, float]]
    is_rate: ClassVar[bool]  # a mean of 0 or 1 per record
    describe: ClassVar[str]

    def sentence(
        self,
        *,
        value: float,
        baseline: float,
        story: str = "",
        epsilon: float = 0.0,
        original: float | None = None,
    ) -> str:
        """The figure in words for a steward; ``story`` says who the attacker is."""
        ...


class ReconstructMetric(_Metric, Protocol):
    """How far an attacker's table is from the truth, on any subset of the records.

    ``ranges`` are the columns' widths in the whole table; without them those of ``X`` are taken.
    The baseline is the same measure on ``column_mean_guess``.
    """

    goal: ClassVar[Literal["reconstruct"]]

    def measure(
        self,
        X: Floats,
        X_hat: Floats,
        schema: Schema,
        epsilon: float,
        ranges: Floats | None = None,
    ) -> float: ...


class LinkMetric(_Metric, Protocol):
    """How many targets were found.

    ``link`` is the record that each answer belongs to, -1 for none; ``truth`` the one looked for.
    """

    goal: ClassVar[Literal["link"]]

    def measure(self, link: Ints, truth: Ints) -> float: ...
    def baseline(self, n: int) -> float: ...


class ReleaseMetric(_Metric, Protocol):
    """What the release is worth.

    ``source`` says of which row of ``X`` each row of ``Y`` was made; left out, row i of row i.
    The same state of ``rng`` gives the same split of the records for release and original.
    """

    goal: ClassVar[Literal["release"]]

    def measure(
        self,
        X: Floats,
        label: Codes,
        Y: Floats,
        public: Public,
        rng: np.random.Generator,
        source: Ints | None = None,
    ) -> float: ...
    def original(self, X: Floats, label: Codes, rng: np.random.Generator) -> float: ...
    def baseline(self, label: Codes) -> float: ...


Metric = ReconstructMetric | LinkMetric | ReleaseMetric


def column_mean_guess(X: Floats) -> Floats:
    """The answer of somebody who knows the column means and ignores the release."""
    return np.broadcast_to(X.mean(axis=0), X.shape)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def check_tables(name: str, X: Floats, other: Floats, *, same_shape: bool) -> None:
    """A score of NaN or of misaligned rows must never reach a gate."""
    if len(X) == 0 or len(X) != len(other) or (same_shape and X.shape != other.shape):
        raise Defect(f"{name} got tables of shape {X.shape} and {other.shape}.")
    bad = int(np.sum(~np.isfinite(X))) + int(np.sum(~np.isfinite(other)))
    if bad:
        raise Defect(f"{name} got {bad} values that are not finite.")
