"""What each step of a release stores for the next ones: typed, sealed, one row for each kind.

settings    SettingsFacts     what the release file says of owner, audience and policy
validated   ValidatedFacts    what the checked table holds
sanitized   SanitizedFacts    how the candidate was made
audited     AuditedFacts      what the attacks measured
columns     ColumnFacts       which columns drive the risk
sites       SitesFacts        the sites of a common release and their verdicts, at its centre
pool        PoolFacts         what a site found about the pool of a common release
ending      EndingFacts       why a release ended without a new version
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ppdm_core.model.column_risks import ColumnRisks
from ppdm_core.model.policy import Policy
from ppdm_core.model.release import Guarantee, PublicParameters
from ppdm_core.model.schema import Schema
from ppdm_core.model.score import AuditReport
from ppdm_core.model.verdict import Outcome, Verdict
from ppdm_core.numerics.scaling import Scaling
from warehouse.integrity.home_key import home_key
from warehouse.integrity.seals import insert, integrity_error, is_sealed_by, mac_of, read_rows
from warehouse.json_codec import from_json, to_json
from warehouse.tables import FACTS, VERSIONS

if TYPE_CHECKING:
    from warehouse.database import Run
    from warehouse.transaction import Transaction


class Facts:
    """What one step stores; ``KIND`` names it in the warehouse."""

    KIND: ClassVar[str]


@dataclass(frozen=True)
class SettingsFacts(Facts):
    """Owner, audience and policy of the release file, and the file itself."""

    KIND = "settings"

    owner: str
    audience: str
    policy: Policy
    file: str  # JSON


@dataclass(frozen=True)
class ValidatedFacts(Facts):
    """The validated table: its records, columns, and the cells that were changed."""

    KIND = "validated"

    n: int  # records
    data: str  # digest of all that a release can use of the records
    schema: Schema
    clamped: Mapping[str, int] = field(default_factory=dict)  # column -> cells moved to its bounds
    imputed: Mapping[str, int] = field(default_factory=dict)  # column -> missing cells filled
    dropped_rows: int = 0
    # column -> rows that were dropped for it; a row may be counted for several columns
    dropped_empty: Mapping[str, int] = field(default_factory=dict)
    dropped_unlisted: Mapping[str, int] = field(default_factory=dict)  # no declared category
    other: Mapping[str, int] = field(default_factory=dict)  # column -> cells that became "other"
    repeated_rows: int = 0  # equal to an earlier one in all features and the label


@dataclass(frozen=True, eq=False)
class SanitizedFacts(Facts):
    """The candidate: its method, public parameters, guarantee and digests."""

    KIND = "sanitized"

    data_digest: str  # of the file that would be published
    table_digest: str  # of the same rows in the warehouse, with their records
    method: str
    parameters: Mapping[str, Any]
    public: PublicParameters
    schema: Schema  # of the scaled records
    guarantee: Guarantee
    atom: float  # largest probability of any single value in one released cell
    counts: Mapping[str, int]  # for example clipped scores
    scaling: Scaling
    released: int  # rows
    set_aside: int  # records that are not in this release, because a fit used them
    set_aside_fits: tuple[str, ...]  # digests of the fits that records are set aside for
    drawn_set_aside: int  # records set aside that earlier releases drew, which is charged
    fit: str | None  # identity of what was learned from records; None: nothing was
    fitted: str  # digest of what was learned
    draws: str  # digest of what is drawn of which record
    same_columns: bool  # released columns are the original ones
    row_aligned: bool  # each released row is made from one record

    @property
    def features(self) -> tuple[str, ...]:
        """The original numeric columns."""
        return self.schema.names


@dataclass(frozen=True)
class AuditedFacts(Facts):
    """The report of the audit."""

    KIND = "audited"

    report: AuditReport


@dataclass(frozen=True)
class DensityErrors:
    """How far densities of one class are from the true one, from 0 to 1, as a site rounded it."""

    category: str
    plug_in: float  # of the site's density, if the class were normal
    held_out: float  # of the site's density, a lower bound
    mixture: float  # of the density of the pool, a lower bound


@dataclass(frozen=True)
class SiteFacts:
    """What one site of a common release sent, and its signed verdict on the pool."""

    name: str
    rows: int
    manifest: str  # digest of its own manifest
    outcome: Outcome
    approvals: int  # by its reviewers, of a REVIEW
    broken: tuple[str, ...]  # checks that did not pass
    errors: tuple[float, ...]  # of classifiers on its test rows, by the number of sites
    densities: tuple[DensityErrors, ...]  # one for each class; none if no rows were resampled
    statement: Mapping[str, Any]  # as it signed it
    public: str
    ed25519: str

    @property
    def allows(self) -> bool:
        """Whether the site allows to publish the pool."""
        return self.outcome == "PASS" or (self.outcome == "REVIEW" and self.approvals > 0)


@dataclass(frozen=True)
class SitesFacts(Facts):
    """The sites of a common release, stored by the centre."""

    KIND = "sites"

    roll: str  # digest
    sites: tuple[SiteFacts, ...]


@dataclass(frozen=True)
class PoolFacts(Facts):
    """The verdict of a site on the pool of a common release, before it is signed and sent."""

    KIND = "pool"

    verdict: Verdict
    figures: tuple[Mapping[str, Any], ...]  # rounded scores
    errors: tuple[float, ...]  # of the centre's classifiers on the test rows of the site
    densities: tuple[DensityErrors, ...]  # one for each class; none if no rows were resampled
    reached: str  # when, in ISO format


@dataclass(frozen=True)
class ColumnFacts(Facts):
    """Which columns drive the risk; for the steward alone."""

    KIND = "columns"

    risks: ColumnRisks | None
    why: str = ""  # why it was not measured


@dataclass(frozen=True)
class EndingFacts(Facts):
    """Why a release ended without a new version; at most one field is set."""

    KIND = "ending"

    refused_because: str | None = None  # what the checks before publishing found
    rejected_by: str | None = None  # name of the person


F = TypeVar("F", bound=Facts)


def store_facts(db: Transaction, run: Run, facts: Facts) -> None:
    """Insert the facts of a run as a sealed row."""
    value = json.dumps(to_json(facts), allow_nan=False)
    row = {"release_id": run.release_id, "kind": facts.KIND, "value": value}
    insert(db, FACTS, {**row, "seal": mac_of(home_key(db), FACTS, row)})


def find_facts(db: Transaction, release_id: str, kind: type[F]) -> F | None:
    """Return the facts of a release, or None if there are none; refuse facts that were changed."""
    rows = read_rows(db, FACTS, "release_id = ? and kind = ?", [release_id, kind.KIND])
    for row in rows:
        seal = row.pop("seal", None)
        if not is_sealed_by(seal, mac_of(home_key(db), FACTS, row)):
            raise integrity_error(
                f"The stored facts of {release_id} ({kind.KIND}) were changed afterwards."
            )
    known: Any = kind  # mypy does not know that a type is hashable
    return decode_facts(known, rows[0]["value"]) if rows else None


@lru_cache(maxsize=8)
def decode_facts(kind: Any, value: str) -> Any:
    """Return the facts of a stored text; each step of a release reads the same few."""
    return from_json(kind, json.loads(value))


def read_facts(db: Transaction, release_id: str, kind: type[F]) -> F:
    """Return the facts of a release; refuse a release without them."""
    facts = find_facts(db, release_id, kind)
    if facts is None:
        raise integrity_error(f"The stored facts of {release_id} ({kind.KIND}) are missing.")
    return facts


def read_published_facts(db: Transaction, dataset: str, kind: type[F]) -> list[F]:
    """Return the facts of every published version of a dataset, the oldest first."""
    rows = db.execute(
        f"select release_id from {VERSIONS} where dataset = ? order by number", [dataset]
    ).fetchall()
    return [read_facts(db, release_id, kind) for (release_id,) in rows]
