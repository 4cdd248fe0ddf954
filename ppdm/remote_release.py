"""Verify releases in databases and buckets."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from ppdm_core.model.errors import Refused
from ppdm_core.model.manifest import (
    NAME,
    Verified,
    alteration_error,
    check_signature,
    parse_manifest,
)
from ppdm_core.model.statement import check_approvals, check_site_verdicts
from ppdm_core.model.withdrawal import NOTICE_NAME, Notice, check_notice

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def verify_database(url: str, table: str, key: Ed25519PublicKey | None = None) -> Verified | Notice:
    """Return the release in a table of a database, if every row is as it was published.

    In place of a withdrawn one, return its notice.
    """
    from warehouse.sinks.delivered import digest_table, read_document

    raw, place = read_document(url, table), PurePath(table)
    try:
        manifest = parse_manifest(place / NAME, raw)
    except Refused:
        return check_notice(place, raw, {NOTICE_NAME}, key)
    if key is not None:
        check_signature(place / NAME, manifest, key)
    names = [each.get("table") for each in manifest.get("sinks", []) if isinstance(each, dict)]
    if table.partition(".")[2] not in names:
        raise alteration_error(place, "is not the table that its manifest is about")
    if digest_table(url, table) != manifest.get("rows_digest"):
        raise alteration_error(place, "was changed after the release")
    check_site_verdicts(place / NAME, manifest)
    approvals = tuple(check_approvals(place / NAME, manifest))
    signer = manifest.get("signature", {}).get("key")
    return Verified(manifest, signer, key is not None, approvals)


@contextmanager
def fetch_bucket_version(url: str) -> Iterator[Path]:
    """Fetch a version from a bucket to a temporary folder, which is removed at the end."""
    from warehouse.sinks.delivered import fetch_version

    with tempfile.TemporaryDirectory(prefix="ppdm-") as folder:
        fetch_version(url, Path(folder))
        yield Path(folder)
