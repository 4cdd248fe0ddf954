"""A small table, releases of it, and an attack that looks around."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ppdm_core.audit.draws import OriginalTable, ReleaseDraw
from ppdm_core.audit.runner import Auditor, choose_audits
from ppdm_core.model.attacker import Attack, AttackerView, Estimate
from ppdm_core.model.errors import NotApplicable
from ppdm_core.model.policy import Attacker, Limit, Policy
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.model.score import Score

N, D = 80, 4
FEW = ("transform_inverse", "shrinkage", "known_pairs", "record_linkage")
COPY = PublicParameters("copy", "original", tuple(f"x{j}" for j in range(D)))
LAPLACE = replace(
    COPY,
    space="components",
    centre=np.full(D, 0.5),
    loadings=np.eye(D),
    law="laplace",
    scales=np.full(D, 0.05),
)


def truth(n: int = N) -> OriginalTable:
    rng = np.random.default_rng(1)
    X = rng.random((n, D))
    return OriginalTable(
        X,
        (X[:, 0] > 0.5).astype(np.int32),
        Schema(tuple(Numeric(f"x{j}", 0.0, 1.0) for j in range(D))),
    )


def policy(limits: int = 1, **attacker: Any) -> Policy:
    known = {"known_records": 20, "sample_share": 0.1, "epsilon": 0.1, **attacker}
    lines = {f"limit {i}": Limit(1.0, "DPO", "test") for i in range(limits)}
    return Policy(required=FEW, limits=lines, attacker=Attacker(**known), effort="quick")


def auditor(
    *Y: np.ndarray, public: PublicParameters = COPY, seed: bytes = b"s", **changed: Any
) -> Auditor:
    draws = tuple(ReleaseDraw(y, public) for y in Y)
    return Auditor(truth(len(Y[0])), draws, changed.pop("policy", policy(**changed)), seed)


def noisy(seed: int, b: float = 0.05, n: int = N) -> np.ndarray:
    return truth(n).X - 0.5 + np.random.default_rng(seed).laplace(0.0, b, (n, D))


def scores(one: Auditor) -> dict[str, Score]:
    found = {}
    for name in choose_audits(one.policy):
        try:
            found.update({score.name: score for score in one.run(name)})
        except NotApplicable:
            continue
    return found


@dataclass(frozen=True)
class Spy(Attack):
    """Remembers what it was shown, and answers with fixed tables."""

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


def shown(*Y: np.ndarray, goal: str = "reconstruct", **changed: Any) -> list[AttackerView]:
    spy = Spy(goal=goal)
    if goal == "link":
        spy.candidates["none"] = np.full(N - 28, -1)
    auditor(*Y, **changed).run_trials(spy)
    return spy.seen


def same_rows(A: np.ndarray, B: np.ndarray) -> bool:
    return sorted(map(bytes, A)) == sorted(map(bytes, B))
