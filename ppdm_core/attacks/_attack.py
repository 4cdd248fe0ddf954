"""What an attack must provide."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.attacker import AttackerView, ColumnKind, Estimate, Goal


class Attack(ABC):
    """One thing that an attacker could try on a release.

    An attack receives an ``AttackerView`` and never the original table. To be required by a policy
    or judged by a limit, it names at least one planted leak that it must notice.
    """

    name: ClassVar[str]
    story: ClassVar[str]  # one sentence: who the attacker is and what is known
    title: ClassVar[str] = ""  # a line of a plot: what the attacker does; "": the name
    goal: ClassVar[Goal]
    needs: ClassVar[frozenset[str]]  # fields of the view, and "public.map", "public.noise", ...
    reads: ClassVar[frozenset[ColumnKind]] = frozenset({"numeric"})  # columns it can work on alone
    must_notice: ClassVar[Mapping[str, float]] = {}  # planted leak -> least share of the trials
    leak_variant: ClassVar[str] = ""  # variant of the planted leaks that suits the attack
    in_every_audit: ClassVar[bool] = False  # other attacks build on it, so it always runs
    runs_half_known: ClassVar[bool] = False  # also tried by an attacker who knows half of all rows
    searches_all_rows: ClassVar[bool] = False  # also those of a large release, block by block
    limited_as: ClassVar[tuple[str, ...]] = ()  # in a pool: the first that has limits lends them
    file_story: ClassVar[str] = ""  # the story where two files are compared, if it differs

    @abstractmethod
    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        """Return the candidates that this attack finds."""


@runtime_checkable
class ExplainsError(Protocol):
    """An attack that can split its error into parts once the original records are shown."""

    def explain(self, view: AttackerView, X: Floats) -> Mapping[str, float]: ...
