"""The rows of every site, checked against its signed manifest and against each other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.manifest import NAME, check_signature, parse_manifest
from ppdm_core.model.release import PublicParameters
from tasks.context import ReleaseContext
from tasks.sites.exchange import Exchange
from tasks.sites.rows import ReleasedTable, bad_rows, parse_table
from tasks.sites.terms import select_common_parameters
from warehouse.json_codec import from_json
from warehouse.messages.payloads import SiteRows
from warehouse.publishing.manifest import digest_text
from warehouse.publishing.publish import DATA

COMMON_FIELDS = ("method", "public", "features", "scaling", "label", "noise")


def check_bound(text: str) -> str:
    """Return the text of the logarithm of a bound; raise ValueError for another one."""
    if not float(text) >= 0:
        raise ValueError("A bound is a number that is not below zero.")
    return text


Bound = Annotated[str, AfterValidator(check_bound)]  # as text, because JSON has no infinity


class Fields(BaseModel):
    """Fields of a manifest that the centre uses; there may be others."""

    model_config = ConfigDict(strict=True)


class GuaranteeFields(Fields):
    """What a site guarantees of its rows."""

    kind: Literal["bounded", "bounded_given_basis", "empirical"]
    ln_component: Bound
    ln_attribute: Bound
    ln_record: Bound
    assumptions: list[str]
    without_bound: list[str]


class ScalingFields(Fields):
    """How a site scaled its records."""

    kind: Literal["minmax", "none"]


class PublicFields(Fields):
    """What recipients know of the method of a site."""

    method: str
    space: Literal["components", "original", "rotated", "embedded"]
    columns: Annotated[list[str], Field(min_length=1)]


class VerdictFields(Fields):
    """How the gate of a site decided."""

    outcome: str


class FileFields(Fields):
    """A file of a release."""

    sha256: str


class ManifestFields(Fields):
    """The manifest of a site."""

    dataset: str
    method: str
    parameters: dict[str, Any]
    rows: int
    public: PublicFields
    scaling: ScalingFields
    guarantee: GuaranteeFields
    verdict: VerdictFields
    files: dict[str, FileFields]


@dataclass(frozen=True, eq=False)
class SitePart:
    """What one site sent."""

    name: str
    manifest: Mapping[str, Any]
    manifest_digest: str
    table: ReleasedTable


class NotPassed(Refused):
    """The gate of a site did not pass its rows."""


def collect_parts(context: ReleaseContext, exchange: Exchange) -> list[SitePart]:
    """Return the checked parts of all sites; raise NotPassed if the gate of one refused its own."""
    sent = {site: exchange.receive(site, "rows", SiteRows) for site in exchange.session.roll.sites}
    refused = [site for site, rows in sent.items() if rows.outcome != "PASS"]
    if refused:
        raise NotPassed(
            f"The gate of '{refused[0]}' did not pass its rows, so nothing is pooled.",
            remedy="Ask that site; nothing was published.",
        )
    parts = [check_part(context, exchange, site, rows) for site, rows in sent.items()]
    check_equal_manifests(parts)
    return parts


def check_part(context: ReleaseContext, exchange: Exchange, site: str, rows: SiteRows) -> SitePart:
    """Return the part of a site, if its manifest is signed by it and describes these rows."""
    source = PurePath(f"{site}/{NAME}")
    manifest = parse_manifest(source, rows.manifest.encode())
    check_signature(source, manifest, exchange.session.roll.find(site).verifier())
    try:
        fields = ManifestFields.model_validate(manifest)
        columns = read_public(manifest).columns
    except (ValueError, TypeError, KeyError, AttributeError):
        raise bad_rows(site, "have a manifest without the fields of a release") from None
    if (fields.dataset, fields.method) != (context.dataset, context.method):
        raise bad_rows(site, "are of another dataset or method than the roll")
    sent, own = map(select_common_parameters, (fields.parameters, context.parameters))
    if sent != own:
        raise bad_rows(site, "were made with other parameters than those of the roll")
    if fields.verdict.outcome not in ("PASS", "REVIEW"):
        raise bad_rows(site, "have no verdict that allows to send them")
    table = parse_table(site, rows.data, columns, context)
    described = fields.files.get(DATA)
    if described is None or table.digest != described.sha256 or len(table.Y) != fields.rows:
        raise bad_rows(site, "are not those that its manifest describes")
    return SitePart(site, manifest, digest_text(rows.manifest), table)


def read_public(manifest: Mapping[str, Any]) -> PublicParameters:
    """Return the public parameters of a manifest."""
    return from_json(PublicParameters, manifest["public"])


def check_equal_manifests(parts: list[SitePart]) -> None:
    """Raise BadInput unless the rows of all sites mean the same to a recipient."""
    first, *others = parts
    for part in others:
        for name in COMMON_FIELDS:
            before, after = (
                json.dumps(each.manifest.get(name), sort_keys=True) for each in (first, part)
            )
            if before != after:
                raise BadInput(
                    f"The rows of '{first.name}' and '{part.name}' differ in '{name}', so they "
                    "cannot be pooled.",
                    remedy="Begin a new release with one release file and one version of ppdm.",
                )
