from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ppdm_core.errors import Defect
from ppdm_core.metrics._metric import Better, Kind, percent
from ppdm_core.types import Ints


@dataclass(frozen=True)
class Rate:
    """Share of targets that were linked to their own released row; -1 is a miss."""

    name: ClassVar[str] = "rate"
    kind: ClassVar[Kind] = "privacy"
    better: ClassVar[Better] = "down"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    goal: ClassVar[Literal["link"]] = "link"
    is_rate: ClassVar[bool] = True
    describe: ClassVar[str] = "share of the people looked for whose row was found"

    def measure(self, link: Ints, truth: Ints) -> float:
        if link.shape != truth.shape or link.ndim != 1 or len(link) == 0:
            raise Defect(f"{self.name} got links of shape {link.shape} for {truth.shape} targets.")
        if not np.issubdtype(link.dtype, np.integer) or bool((truth < 0).any()):
            raise Defect(f"{self.name} needs whole numbers as links, and a record per target.")
        return float(np.mean(link == truth))

    def baseline(self, n: int) -> float:
        """A row picked blindly out of ``n``."""
        return 1.0 / n

    def sentence(
        self,
        *,
        value: float,
        baseline: float,
        story: str = "",
        epsilon: float = 0.0,
        original: float | None = None,
    ) -> str:
        return (
            f"{story} That finds {percent(value)} of them; "
            f"picking rows blindly finds {percent(baseline)}."
        ).strip()
