"""Publish the pool of all sites, with the digests of their manifests and their signed verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ppdm_core.model.verdict import Review
from tasks.context import ReleaseContext
from tasks.publish.card import format_card
from tasks.publish.manifest_body import build_manifest
from tasks.publish.report.build import build_view
from tasks.publish.report.facts import ReportFacts
from tasks.publish.report.render import render_report
from tasks.release_summary import Summary
from warehouse.code_version import compute_code_version
from warehouse.integrity.dataset_key import dataset_noise
from warehouse.publishing.expected_content import ExpectedContent, hold_numbers
from warehouse.publishing.publish import PublishRequest
from warehouse.publishing.released_profile import read_released_profile
from warehouse.stage_facts import SanitizedFacts, SitesFacts
from warehouse.transaction import Transaction


def build_pool_request(
    db: Transaction, context: ReleaseContext, summary: Summary, sites: SitesFacts
) -> PublishRequest:
    """Return everything that publishing the pool needs and checks."""
    sanitized = summary.judged.sanitized
    released = read_released_profile(db.home.candidate(summary.run.release_id))
    view = build_view(ReportFacts(summary, released=released), "recipients")
    noise = dataset_noise(db, context.dataset)  # of the centre: it hides the digest of its input
    return PublishRequest(
        run=summary.run,
        policy_digest=context.policy.digest,
        review=Review(),
        code_version=compute_code_version(),
        expected=expect_pool(context, sanitized),
        data_digest=sanitized.data_digest,
        table_digest=sanitized.table_digest,
        is_comparable=False,
        card=format_card(view),
        report=render_report(view),
        manifest={**build_manifest(context, summary, noise), "sites": describe_sites(sites)},
    )


def expect_pool(context: ReleaseContext, sanitized: SanitizedFacts) -> ExpectedContent:
    """Return what the leak scan checks without original records, which the centre does not have.

    Every site scanned its own rows against its own records before it sent them.
    """
    public, label = sanitized.public, context.label
    nothing = np.zeros((sanitized.released, 0))
    return ExpectedContent(
        columns=public.columns,
        label=label.name if label else None,
        categories=label.categories if label else (),
        rows=sanitized.released,
        atom=sanitized.atom,
        draws=len(public.columns),
        grid=None,
        forbidden=frozenset(c.name for c in context.columns if c.role in ("identifier", "exclude")),
        originals=hold_numbers(nothing),
        same_columns=False,
    )


def describe_sites(sites: SitesFacts) -> dict[str, Any]:
    """Return what the manifest says of the sites: digests, and verdicts with their signatures."""
    return {
        "roll": sites.roll,
        "count": len(sites.sites),
        "verdicts": [
            {
                "manifest": site.manifest,
                "outcome": site.outcome,
                "signed": {
                    "statement": dict(site.statement),
                    "public": site.public,
                    "ed25519": site.ed25519,
                },
            }
            for site in sites.sites
        ],
    }
