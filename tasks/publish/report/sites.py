"""The sites of a common release: each with its verdict for the centre, their number for others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ppdm_core.audit.disclosure_rounding import format_band
from ppdm_core.model.release import ENERGY_LOSS
from tasks.publish.report.view import DensityLine, Edition, SiteLine, SitesSection
from warehouse.stage_facts import SiteFacts, SitesFacts

LEDGERS = (
    "Every site adds up all releases of its records in its own ledger; the centre has no ledger."
)


def build_sites(
    sites: SitesFacts | None, edition: Edition, facts: Mapping[str, float | str]
) -> SitesSection | None:
    """Return the section on the sites; recipients read how many there are, and rounded errors.

    ``facts`` are the public ones of the method.
    """
    if sites is None:
        return None
    lines = tuple(map(describe_site, sites.sites)) if edition == "steward" else ()
    return SitesSection(
        len(sites.sites),
        lines,
        list_mean_errors(sites),
        list_mean_densities(sites),
        list_losses(facts),
    )


def describe_site(site: SiteFacts) -> SiteLine:
    """Return what one site sent and how it judged the pool."""
    figures = tuple(
        (str(each["name"]), format_band(each["value"]), format_band(each["baseline"]))
        for each in site.statement["figures"]
    )
    return SiteLine(
        site.name,
        f"{site.rows:,}",
        site.outcome,
        ", ".join(site.broken),
        figures,
        list_errors(site.errors),
        tuple(
            format_densities(each.category, each.plug_in, each.held_out, each.mixture)
            for each in site.densities
        ),
    )


def format_densities(category: str, plug_in: float, held_out: float, mixture: float) -> DensityLine:
    """Return the errors of the densities of a class as cells of a table."""
    return category, f"at most {plug_in:.2g}", f"at least {held_out:.2g}", f"at least {mixture:.2g}"


def list_mean_densities(sites: SitesFacts) -> tuple[DensityLine, ...]:
    """Return the mean over the sites of the errors of each class, weighted by their rows."""
    measured = [site for site in sites.sites if site.densities]
    shares, found = [site.rows for site in measured], []
    for lines in zip(*(site.densities for site in measured), strict=True):
        means = (
            float(np.average([getattr(line, name) for line in lines], weights=shares))
            for name in ("plug_in", "held_out", "mixture")
        )
        found.append(format_densities(lines[0].category, *means))
    return tuple(found)


def list_losses(facts: Mapping[str, float | str]) -> tuple[tuple[str, str], ...]:
    """Return the losses of energy, of all records and at each party; none for other methods."""
    if ENERGY_LOSS not in facts:
        return ()
    names = [name for name in facts if name.startswith(f"{ENERGY_LOSS}_")]
    rows = [("complete records", facts[ENERGY_LOSS])]
    rows += [(f"columns of party {t}", facts[name]) for t, name in enumerate(names, start=1)]
    return tuple((whose, f"{float(share):.2g}") for whose, share in rows)


def list_mean_errors(sites: SitesFacts) -> tuple[tuple[str, str], ...]:
    """Return the mean error of classifiers of the first 1, 2, ... sites on all test rows."""
    found = [site.errors for site in sites.sites if site.errors]
    if not found:
        return ()
    count = min(map(len, found))
    return list_errors([sum(errors[k] for errors in found) / len(found) for k in range(count)])


def list_errors(errors: Sequence[float]) -> tuple[tuple[str, str], ...]:
    """Return the errors of classifiers of the first 1, 2, ... sites as cells of a table."""
    return tuple((str(k), f"at most {error:.1%}") for k, error in enumerate(errors, start=1))
