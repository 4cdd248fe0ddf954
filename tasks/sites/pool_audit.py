"""A site attacks the pool with its own records, and signs a verdict on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ppdm_core.attacks import ATTACKS, Attack
from ppdm_core.audit.disclosure_rounding import round_report
from ppdm_core.audit.draws import PartnerRows
from ppdm_core.audit.runner import choose_audits
from ppdm_core.gates import GateInput, decide
from ppdm_core.metrics import METRICS
from ppdm_core.model.attacker import SiteMoments
from ppdm_core.model.policy import Limit, Policy
from ppdm_core.model.score import AuditReport
from ppdm_core.model.statement import SITE_VERDICT, sign_statement
from ppdm_core.numerics.integer_moments import sum_moments
from tasks.audit.attack_inputs import AuditInputs, make_job, read_inputs
from tasks.audit.attack_process import AttackProcess, run_attacks
from tasks.audit.self_test import SelfTestRun
from tasks.context import ReleaseContext
from tasks.judge.ledger_charge import compute_balance
from tasks.sanitize.records import export_records, select_named
from tasks.sites.density_errors import measure_density_errors
from tasks.sites.exchange import Exchange
from tasks.sites.fit import scale_for_fit
from tasks.sites.model_error import measure_model_errors
from tasks.sites.rows import ReleasedTable, find_own_rows, parse_table
from warehouse.checkpoints import checkpoint
from warehouse.clock import now
from warehouse.database import Run
from warehouse.messages.payloads import Pool, SiteRows, SiteVerdict
from warehouse.publishing.manifest import digest_text
from warehouse.stage_facts import (
    AuditedFacts,
    PoolFacts,
    SanitizedFacts,
    ValidatedFacts,
    read_facts,
)

if TYPE_CHECKING:
    from warehouse.transaction import Transaction


def attack_pool(
    context: ReleaseContext, release_id: str, exchange: Exchange, sent: SiteRows, pool: Pool
) -> PoolFacts:
    """Return the verdict of this site on the pool, with rounded figures.

    The pool is attacked with shadow draws in place of the rows of this site; their records, the
    shadow draws and the halves stay here.
    """
    store = context.open_store()
    work = store.home.work(release_id)
    store.home.clear_work(release_id)
    has_moments = context.make_sanitizer().common_fit == "moments"
    policy = extend_policy(context.policy, has_moments=has_moments)
    errors = measure_errors(exchange, context, pool)  # before the attacks: they take minutes
    with context.open_run(release_id) as (db, run):
        facts = read_facts(db, release_id, SanitizedFacts)
        own_report = read_facts(db, release_id, AuditedFacts).report
        balance = compute_balance(
            db, run, context, read_facts(db, release_id, ValidatedFacts), facts
        )
        self_test = SelfTestRun(db, run, policy)
        inputs = read_inputs(db, context, run, work)
        moments = measure_set_aside(db, context, run, inputs) if has_moments else None
    found = parse_table("centre", pool.data, facts.public.columns, context)
    own = parse_table(exchange.member.name, sent.data, facts.public.columns, context)
    partners = replace(select_partners(found, own, inputs), moments=moments)
    # Earlier versions of this home were for the centre, and its gate judged them.
    job = replace(make_job(context, run, inputs), partners=partners, policy=policy, earlier=None)
    with AttackProcess(job) as process:
        self_test.check_attacks(process)
        report = run_attacks(job, choose_pool_audits(policy), lambda share: None, process)
    densities = measure_density_errors(context, inputs, found, job.seed)
    store.home.clear_work(release_id)
    checkpoint("pool attacked")
    # The policy was tried on bad releases of the same records when this site judged its own rows.
    own_test = own_report.self_test
    tested = replace(self_test.result, policy_check=own_test.policy_check if own_test else None)
    gate_input = GateInput(
        report=replace(report, self_test=tested),
        guarantee=facts.guarantee,
        method=context.method,
        policy=policy,
        owner=context.owner,
        audience=context.audience,
        has_numbers=bool(facts.public.columns),
        balance=balance,
        advice=context.make_sanitizer().advise(),
    )
    verdict = decide(gate_input, data_digest=found.digest, code_version=run.code_version)
    figures = tuple(list_figures(report, policy))
    return PoolFacts(verdict, figures, tuple(errors), densities, now().isoformat())


def choose_pool_audits(policy: Policy) -> tuple[str, ...]:
    """Return the audits of a pool: attacks, and the metrics of a release that the policy names.

    Others take minutes, and no figure of them is judged or leaves this site.
    """
    named = {*policy.required, *(limit.split(".")[0] for limit in policy.limits)}
    return tuple(name for name in choose_audits(policy) if name not in METRICS or name in named)


def extend_policy(policy: Policy, *, has_moments: bool) -> Policy:
    """Return the policy with the attacks of other sites, required and limited.

    ``has_moments``: the sites exchanged moments, so that others can subtract theirs.
    """
    limits, required = dict(policy.limits), [*policy.required]
    for name, attack in ATTACKS.items():
        if attack.limited_as and (has_moments or "site_moments" not in attack.needs):
            required.append(name)
            limits |= find_limits(policy, attack)
    return replace(policy, required=tuple(required), limits=limits)


def find_limits(policy: Policy, attack: Attack) -> dict[str, Limit]:
    """Return the limits on the first attack that this one resembles, under its own name.

    Each is judged against its own baseline.
    """
    for resembled in attack.limited_as:
        start = f"{resembled}."
        found = {key: limit for key, limit in policy.limits.items() if key.startswith(start)}
        if found:
            return {f"{attack.name}.{key.removeprefix(start)}": found[key] for key in found}
    return {}


def measure_set_aside(
    db: Transaction, context: ReleaseContext, run: Run, inputs: AuditInputs
) -> SiteMoments:
    """Return what all other sites learn of the set-aside records from the sum over all sites."""
    validated = read_facts(db, run.release_id, ValidatedFacts)
    records = export_records(db, run, validated, inputs.work)
    set_aside = select_named(records, inputs.noise, inputs.fit.set_aside)
    scaled = scale_for_fit(set_aside, context.make_sanitizer())
    found = sum_moments(scaled)
    schema = scaled.schema
    return SiteMoments(found.n, found.compute_exact_mean(schema), found.compute_covariance(schema))


def select_partners(pool: ReleasedTable, own: ReleasedTable, inputs: AuditInputs) -> PartnerRows:
    """Return the rows of all other sites, in the units of the shadow draws."""
    is_other = ~find_own_rows(pool, own)
    return PartnerRows(pool.scale(inputs.sanitized)[is_other], pool.label[is_other])


def measure_errors(exchange: Exchange, context: ReleaseContext, pool: Pool) -> Sequence[float]:
    """Return the rounded error of each classifier of the centre on the test rows of this site."""
    if not exchange.member.test_file or not pool.models:
        return ()
    sites = len(exchange.session.roll.sites)
    return measure_model_errors(exchange.member.test_file, context, pool.models, sites)


def sign_verdict(
    exchange: Exchange, facts: PoolFacts, sent: SiteRows, approvals: int
) -> SiteVerdict:
    """Return the verdict with rounded figures, signed with the key of this home.

    ``approvals`` is the number of reviewers of this site who approved a REVIEW of the pool; 0 if
    they did not, or not enough of them.
    """
    session, verdict = exchange.session, facts.verdict
    statement: dict[str, Any] = {
        "dataset": session.roll.dataset,
        "session": session.roll.session,
        "roll": session.roll.digest,
        "manifest": digest_text(sent.manifest),
        "pool": verdict.data_digest,
        "outcome": verdict.outcome,
        "approvals": approvals,
        "broken": sorted({each.check for each in verdict.failures}),
        "figures": [dict(each) for each in facts.figures],
        "errors": list(facts.errors),
        "densities": [asdict(each) for each in facts.densities],
        "policy": verdict.policy_digest,
        "code": verdict.code_version,
    }
    signature = sign_statement(SITE_VERDICT, statement, session.signing)
    return SiteVerdict(statement=statement, public=signature.public, ed25519=signature.ed25519)


def list_figures(
    report: AuditReport, policy: Policy, further: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return the rounded scores that a limit judges, and further ones by name."""
    rounded = round_report(report, policy.attacker.epsilon).scores
    names = ("name", "kind", "better", "value", "low", "high", "baseline", "worst")
    found = [
        {name: getattr(score, name) for name in names}
        for score in rounded
        if score.name in policy.limits or score.name in further
    ]
    return [each for each in found if np.isfinite([each["value"], each["baseline"]]).all()]
