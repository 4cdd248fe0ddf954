"""Signed approvals, and signed verdicts of sites, in manifests."""

from __future__ import annotations

import copy
from pathlib import PurePath
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ppdm_core.model.errors import Refused
from ppdm_core.model.manifest import key_fingerprint
from ppdm_core.model.statement import (
    DECISION,
    SITE_VERDICT,
    check_approvals,
    check_site_verdicts,
    compute_fingerprint,
    sign_statement,
)

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SOURCE = PurePath("manifest.json")


def make_manifest(**changes: str) -> dict[str, Any]:
    """Return a manifest with an approval of Rita, who signed these changes."""
    statement = {
        "choice": "approve",
        "release_id": "t-0001",
        "data": "d",
        "policy": "p",
        "code": "c",
        "by": "rita",
        "key": key_fingerprint(KEY.public_key()),
        **changes,
    }
    signature = sign_statement(DECISION, statement, KEY)
    signed = {
        "statement": statement,
        "public": signature.public,
        "ed25519": signature.ed25519,
    }
    return {
        "release_id": "t-0001",
        "files": {"data.parquet": {"sha256": "d"}},
        "verdict": {"policy_digest": "p"},
        "code_version": "c",
        "approvals": [{"by": "rita", "name": "", "at": "2030-01-01", "signed": signed}],
    }


def test_check_approvals_signed_and_unsigned_only_signed_returned() -> None:
    manifest = make_manifest()
    manifest["approvals"].append({"by": "bob", "name": "", "at": "2030-01-01"})
    (found,) = check_approvals(SOURCE, manifest)
    assert (found.by, found.key) == ("rita", key_fingerprint(KEY.public_key()))
    assert check_approvals(SOURCE, {"release_id": "t-0001"}) == []


@pytest.mark.parametrize("name", ["choice", "release_id", "data", "policy", "code", "by", "key"])
def test_check_approvals_signed_about_something_else_refused(name: str) -> None:
    with pytest.raises(Refused, match="did not sign"):
        check_approvals(SOURCE, make_manifest(**{name: "other"}))


def test_check_approvals_altered_or_incomplete_refused() -> None:
    for path, value in (
        (("statement", "at"), "later"),
        (("ed25519",), "0" * 128),
        (("ed25519",), "x"),
        (("ed25519",), 7),
        (("public",), "x"),
        (("public",), None),
        (("statement",), {}),
        (("statement",), "text"),
    ):
        manifest = copy.deepcopy(make_manifest())
        place = manifest["approvals"][0]["signed"]
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value
        with pytest.raises(Refused, match="did not sign"):
            check_approvals(SOURCE, manifest)
    for approvals in ("text", 7, [7], {"a": 1}):
        with pytest.raises(Refused, match="did not sign"):
            check_approvals(SOURCE, {**make_manifest(), "approvals": approvals})


def test_compute_fingerprint_text_that_is_no_key_empty() -> None:
    assert compute_fingerprint("no key") == ""


def make_pool_manifest(**changes: str) -> dict[str, Any]:
    """Return the manifest of a pool of two sites; the second one signed these changes."""
    verdicts = []
    for number in (1, 2):
        key = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
        statement = {
            "dataset": "ward",
            "roll": "r",
            "manifest": f"m{number}",
            "pool": "d",
            "outcome": "PASS",
            **(changes if number == 2 else {}),
        }
        found = sign_statement(SITE_VERDICT, statement, key)
        signed = {"statement": statement, "public": found.public, "ed25519": found.ed25519}
        verdicts.append({"manifest": f"m{number}", "outcome": "PASS", "signed": signed})
    return {
        "dataset": "ward",
        "files": {"data.parquet": {"sha256": "d"}},
        "sites": {"roll": "r", "count": 2, "verdicts": verdicts},
    }


def test_check_site_verdicts_sound_ones_accepted() -> None:
    check_site_verdicts(SOURCE, make_pool_manifest())
    check_site_verdicts(SOURCE, {"dataset": "ward"})  # of one steward


@pytest.mark.parametrize("name", ["dataset", "roll", "manifest", "pool", "outcome"])
def test_check_site_verdicts_signed_about_something_else_refused(name: str) -> None:
    with pytest.raises(Refused, match="a verdict that its site did not sign for this pool"):
        check_site_verdicts(SOURCE, make_pool_manifest(**{name: "other"}))


def test_check_site_verdicts_altered_or_incomplete_refused() -> None:
    sites = make_pool_manifest()["sites"]
    first, second = sites["verdicts"]
    altered = copy.deepcopy(second)
    altered["signed"]["statement"]["figures"] = []
    for changed in (
        {**sites, "verdicts": [first, altered]},
        {**sites, "verdicts": [first, first]},
        {**sites, "verdicts": [first]},
        {**sites, "verdicts": [first, {}]},
        {**sites, "verdicts": None},
        {**sites, "count": 0, "verdicts": []},
        {},
        [],
    ):
        with pytest.raises(Refused, match="a verdict that its site did not sign for this pool"):
            check_site_verdicts(SOURCE, {**make_pool_manifest(), "sites": changed})
