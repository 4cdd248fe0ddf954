"""The claims of the papers, as the TOML files of this folder list them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ppdm_core.model.errors import BadInput
from studies.reproduction.measurement import NO_TABLE, Measurement
from studies.reproduction.tables import GROWING

FOLDER = Path(__file__).resolve().parent
PAPERS = ("P0", "P1", "P2", "P3", "P4")
KINDS = ("exact", "statistical", "qualitative")
MAX_FULL_DRAWS = 20  # of a large table in a full run, unless a claim asks for more


@dataclass(frozen=True)
class Paper:
    """One of the five papers."""

    id: str
    title: str
    authors: str
    year: int
    short: str


@dataclass(frozen=True)
class Statement:
    """A range that a paper claims for every quantity that matches a pattern."""

    quantity: str
    low: float = float("-inf")
    high: float = float("inf")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim with the rule that decides it."""

    id: str
    place: str
    claim: str
    figure: str
    kind: str
    experiment: str
    statements: Sequence[Statement]
    tolerance: float
    minutes: float
    data: Sequence[str] = (NO_TABLE,)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    parameters_of: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    draws: int = 1
    large_draws: int | None = None
    draws_of: Mapping[str, int] = field(default_factory=dict)  # of single tables, by name
    needs: float = 1.0
    part: float = 0.5
    erratum: Sequence[str] = ()
    reading: str = ""
    corrected: str = ""  # what was wrong in an earlier version of the claim
    variant_of: str = ""

    @property
    def paper(self) -> str:
        return self.id.split(".")[0]

    def list_measurements(self, large: frozenset[str], *, full: bool) -> Iterator[Measurement]:
        """Yield the measurements that decide the claim, one for each table."""
        for table in self.data:
            draws = self.count_draws(table, is_large=table in large, full=full)
            options = {**self.parameters, **self.parameters_of.get(table, {})}
            yield Measurement(
                self.experiment, table, json.dumps(options, sort_keys=True), draws, full
            )

    def count_draws(self, table: str, *, is_large: bool, full: bool) -> int:
        """Return the draws of a table.

        In a full run large tables have more, except generated ones, which are ten times larger
        then.
        """
        least = self.draws if self.large_draws is None else self.large_draws
        usual = self.draws_of.get(table, least if is_large else self.draws)
        if not (full and is_large):
            return usual
        return least if table in GROWING else max(usual, min(self.draws, MAX_FULL_DRAWS))


@lru_cache(maxsize=1)
def read_registry(folder: Path = FOLDER) -> tuple[tuple[Paper, ...], tuple[Claim, ...]]:
    """Return the papers and all their claims, in order."""
    papers, claims = [], []
    for path in sorted(folder.glob("p[0-9].toml")):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        papers.append(Paper(**content["paper"]))
        claims += [parse_claim(path.name, entry) for entry in content["claim"]]
    return tuple(papers), tuple(claims)


def parse_claim(file: str, entry: Mapping[str, Any]) -> Claim:
    """Return a claim, or raise BadInput that names what is wrong in its entry."""
    given = dict(entry)
    try:
        given["statements"] = tuple(Statement(**each) for each in entry["statements"])
        claim = Claim(**given)
    except (KeyError, TypeError) as error:
        name = entry.get("id", "without an id")
        raise BadInput(f"Claim {name} is not complete: {error}.", file=file) from None
    wrong = []
    if claim.kind not in KINDS:
        wrong.append(f"'kind' must be one of {', '.join(KINDS)}")
    if not claim.statements or any(each.low > each.high for each in claim.statements):
        wrong.append("'statements' must have ranges with low <= high")
    if claim.tolerance < 0 or not 0 < claim.part <= claim.needs <= 1:
        wrong.append("'tolerance' must be at least 0, and 0 < part <= needs <= 1")
    if claim.draws < 1 or not claim.data or not set(claim.draws_of) <= set(claim.data):
        wrong.append("'draws' must be at least 1, 'data' not empty, 'draws_of' about its tables")
    if wrong:
        raise BadInput(f"Claim {claim.id}: {'; '.join(wrong)}.", file=file)
    return claim


def select_claims(paper: str | None = None, id: str | None = None) -> tuple[Claim, ...]:
    """Return the claims of a paper, or one claim, or all; raise BadInput if there is none."""
    claims = read_registry()[1]
    if id is not None:
        found = tuple(each for each in claims if each.id.lower() == id.lower())
        if not found:
            raise BadInput(f"There is no claim '{id}'.", remedy="Ids are such as P0.C7.")
        return found
    if paper is None:
        return claims
    if paper.upper() not in PAPERS:
        raise BadInput(f"There is no paper '{paper}'.", remedy=f"Known: {', '.join(PAPERS)}.")
    return tuple(each for each in claims if each.paper == paper.upper())
