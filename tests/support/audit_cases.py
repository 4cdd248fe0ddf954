"""One builder each of small original tables, policies and auditors, and an attack that records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ppdm_core.attacks import Attack
from ppdm_core.audit.auditor import Auditor
from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.audit.runner import choose_audits
from ppdm_core.model.attacker import AttackerView, Estimate
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import Attacker, Effort, Limit, Policy
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.score import Score
from tests.support.views import make_columns

N, D = 80, 4
FEW = ("transform_inverse", "shrinkage", "known_pairs", "record_linkage")
COPY = PublicParameters("copy", "original", tuple(f"x{j}" for j in range(D)))
AS_IS = replace(COPY, centre=np.zeros(D), loadings=np.eye(D))
LAPLACE = replace(
    COPY,
    space="components",
    centre=np.full(D, 0.5),
    loadings=np.eye(D),
    law="laplace",
    scales=np.full(D, 0.05),
)


def make_truth(n: int = N, seed: int = 1) -> OriginalTable:
    """Return uniform records with two classes."""
    X = np.random.default_rng(seed).random((n, D))
    return OriginalTable(X, (X[:, 0] > 0.5).astype(np.int32), make_columns(D))


def make_policy(
    required: tuple[str, ...] = FEW,
    limits: Mapping[str, float] | None = None,
    effort: Effort = "quick",
    **attacker: Any,
) -> Policy:
    """Return a policy; the attacker knows 20 records and a tenth of the table, unless changed."""
    knowledge = {"known_records": 20, "sample_share": 0.1, "epsilon": 0.1, **attacker}
    lines = {name: Limit(value, "DPO", "test") for name, value in (limits or {}).items()}
    return Policy(required, lines, Attacker(**knowledge), effort=effort)


def make_auditor(
    *Y: np.ndarray, public: PublicParameters = COPY, seed: bytes = b"s", **changed: Any
) -> Auditor:
    """Return an auditor of releases of the small table; ``changed`` changes its policy."""
    draws = tuple(ReleaseDraw(y, public) for y in Y)
    return Auditor(make_truth(len(Y[0])), draws, make_policy(**changed), seed)


def draw_noisy(seed: int, b: float = 0.05, n: int = N) -> np.ndarray:
    return make_truth(n).X - 0.5 + np.random.default_rng(seed).laplace(0.0, b, (n, D))


def run_all(auditor: Auditor) -> dict[str, Score]:
    """Return the scores of all audits that the policy chooses and that apply, by name."""
    found = {}
    for name in choose_audits(auditor.policy):
        try:
            found.update({score.name: score for score in auditor.run(name)})
        except NotApplicable:
            continue
    return found


@dataclass(frozen=True)
class Spy(Attack):
    """Records the views that it gets, and returns fixed candidates."""

    candidates: dict[str, np.ndarray] = field(default_factory=dict)
    seen: list[AttackerView] = field(default_factory=list)
    goal: str = "reconstruct"
    name: ClassVar[str] = "spy"
    story: ClassVar[str] = "A spy knows {k} records."

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"reconstructions"} if self.goal == "link" else ())

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        self.seen.append(view)
        return Estimate(self.candidates or {"zero": np.zeros((len(view.Y), D))})


def collect_views(*Y: np.ndarray, goal: str = "reconstruct", **changed: Any) -> list[AttackerView]:
    """Return the view of each draw that an attack with this goal gets."""
    spy = Spy(goal=goal)
    if goal == "link":
        spy.candidates["none"] = np.full(N - 28, -1)
    make_auditor(*Y, **changed).run_trials(spy)
    return spy.seen


def have_same_rows(A: np.ndarray, B: np.ndarray) -> bool:
    return sorted(map(bytes, A)) == sorted(map(bytes, B))
