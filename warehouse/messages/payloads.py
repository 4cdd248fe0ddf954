"""Every kind of message: who sends it to whom, what it holds, and what it reveals.

``KINDS`` is the complete list. A message of another kind, or with other fields than its kind has,
is refused.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Hex32 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]  # 32 bytes
Signed = Annotated[str, Field(pattern="^[0-9a-f]{128}$")]  # an Ed25519 signature
Share = Annotated[float, Field(ge=0, le=1)]
Variance = Annotated[float, Field(ge=0)]
Outcome = Literal["PASS", "REVIEW", "FAIL"]


def check_rectangular(rows: list[list[float]]) -> list[list[float]]:
    """Return the rows of a matrix; raise ValueError if they differ in length."""
    if len({len(row) for row in rows}) > 1:
        raise ValueError("The rows differ in length.")
    return rows


Matrix = Annotated[list[list[float]], AfterValidator(check_rectangular)]


class Payload(BaseModel):
    """The content of a message; fields that its kind does not have are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class OrderKey(Payload):
    """The key of the secret column order, from the first site to each other site."""

    key: Hex32


class Bounds(Payload):
    """The smallest and the largest energy share of each coefficient."""

    low: list[Share]
    high: list[Share]
    columns: list[str] = []  # of a party that holds other columns than the others
    has_label: bool = False  # of such a party


class Selection(Payload):
    """The coefficients that are kept."""

    kept: list[Annotated[int, Field(ge=0)]]


class MaskedSums(Payload):
    """Sums modulo 2^128 with masks that cancel when those of all sites are added."""

    values: str  # base64, 16 bytes each, little-endian


class Basis(Payload):
    """The loadings, and the mean in steps of a sixty-fourth of a column's width."""

    loadings: Matrix
    mean: list[float]


class SharedFit(Payload):
    """What all sites use in place of a fit of their own."""

    loadings: Matrix
    variances: list[Variance]
    ranges: list[tuple[float, float]]
    dropped_variance: Variance


class Roster(Payload):
    """The persons of a party with other columns: their number, and a digest of all ids."""

    count: Annotated[int, Field(ge=0)]
    digest: Hex32  # keyed, of the complete list: it cannot be asked for single ids


class BlindedIds(Payload):
    """Points of ids, raised to secret powers."""

    points: str  # base64, 32 bytes each


class Coefficients(Payload):
    """The coefficients of one party's columns in steps of the grid, modulo 2^64 and masked."""

    outcome: Outcome
    rows: Annotated[int, Field(ge=0)] = 0
    values: str = ""  # base64, 8 bytes each, little-endian, row by row
    energy: str = ""  # base64, 16 bytes: the masked sum of all squares, modulo 2^128
    loss: Share = 0.0  # of the energy of its own columns, in two digits
    label: list[int] = []  # codes of the label, which is released unchanged


class SiteRows(Payload):
    """The sanitized rows that passed the gate of a site, with its manifest; none if it failed."""

    outcome: Outcome
    manifest: str = ""  # the signed manifest, as text
    data: str = ""  # the Parquet file, base64


class ClassifierModel(Payload):
    """A naive Bayes classifier that the centre trained on the rows of the first sites."""

    sites: Annotated[int, Field(ge=1)]
    classes: list[Annotated[int, Field(ge=0, lt=2**31)]]  # codes of the label
    priors: list[Annotated[float, Field(gt=0, le=1)]]
    means: Matrix  # (classes, columns)
    variances: Annotated[
        list[list[Annotated[float, Field(gt=0)]]], AfterValidator(check_rectangular)
    ]

    @model_validator(mode="after")
    def check_lengths(self) -> Self:
        """Check that everything is given once for each class."""
        parts = (self.priors, self.means, self.variances)
        if not self.classes or any(len(part) != len(self.classes) for part in parts):
            raise ValueError("The parts are of different numbers of classes.")
        return self


class Pool(Payload):
    """The rows of all sites in the order of publication, and models of them."""

    data: str  # the Parquet file that is published, base64
    models: list[ClassifierModel] = []


class SiteVerdict(Payload):
    """A verdict that a site signed, with rounded figures."""

    statement: dict[str, Any]
    public: Hex32
    ed25519: Signed


class End(Payload):
    """How the release ended."""

    outcome: Literal["published", "refused"]
    manifest: str = ""  # digest of the manifest of the published version


@dataclass(frozen=True)
class Kind:
    """A kind of message."""

    payload: type[Payload]
    sender: Literal["site", "centre"]
    receiver: Literal["site", "centre"]
    reveals: str  # to the receiver


KINDS: dict[str, Kind] = {
    "order": Kind(
        OrderKey,
        "site",
        "site",
        "the key of the secret column order, to sites alone; the centre cannot decrypt it",
    ),
    "bounds": Kind(
        Bounds,
        "site",
        "centre",
        "for each cosine coefficient, the smallest and the largest share of energy that it holds "
        "of a record of the site; of a party with other columns also their names, and whether it "
        "holds the label",
    ),
    "selection": Kind(Selection, "centre", "site", "which coefficients are kept"),
    "moments": Kind(
        MaskedSums,
        "site",
        "centre",
        "nothing alone; with those of all sites the count, sums and cross-products of the records "
        "that all sites together set aside",
    ),
    "basis": Kind(
        Basis, "centre", "site", "the common loadings, and the common mean in coarse steps"
    ),
    "scores": Kind(
        MaskedSums,
        "site",
        "centre",
        "nothing alone; with those of all sites two sums of squared lengths outside the basis, and "
        "the ranges of the scores in two digits",
    ),
    "fit": Kind(
        SharedFit,
        "centre",
        "site",
        "loadings, variances and ranges in two digits, which are published with the release",
    ),
    "roster": Kind(
        Roster,
        "site",
        "site",
        "how many persons a party with other columns has, and whether they are the same ones",
    ),
    "blinded": Kind(
        BlindedIds,
        "site",
        "site",
        "how many persons the other party has; with the answer, who is at both",
    ),
    "coefficients": Kind(
        Coefficients,
        "site",
        "centre",
        "nothing alone; with those of all parties the kept coefficients of each person, which are "
        "published, in a secret order of rows and columns, and the energy of all records together; "
        "which share of the energy of its columns is lost, in two digits, which is published; the "
        "label, if that party holds it; or only that its gate did not pass its columns",
    ),
    "rows": Kind(
        SiteRows,
        "site",
        "centre",
        "the sanitized rows of the site, after its gate passed them, and their manifest; or only "
        "that its gate did not pass them",
    ),
    "pool": Kind(
        Pool,
        "centre",
        "site",
        "the sanitized rows of all sites without their sites, which are published if all sites "
        "agree; classifiers that were trained on the rows of the first sites",
    ),
    "verdict": Kind(
        SiteVerdict,
        "site",
        "centre",
        "outcome and rounded figures of the site's attacks on the pool; rounded errors of the "
        "classifiers on its test rows, and of the densities of its classes; they are published",
    ),
    "end": Kind(End, "centre", "site", "whether the pool was published"),
}


def encode_bytes(raw: bytes) -> str:
    """Return bytes as text."""
    return base64.b64encode(raw).decode()


def decode_bytes(text: str) -> bytes:
    """Return the bytes of a text; raise ValueError if it is none of ``encode_bytes``."""
    return base64.b64decode(text, validate=True)
