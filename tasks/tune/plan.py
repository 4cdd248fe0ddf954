"""What a tune will try: the sample of the records, the settings, the rounds, and its own keys."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ppdm_core.model.arrays import Ints
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import AMPLIFICATION
from ppdm_core.model.rows import ArrayRows, Block, load_rows, select_rows
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers import SANITIZERS
from ppdm_core.sanitizers._sweep import SweepScope
from ppdm_core.settings.errors import check_known
from ppdm_core.tuning.halving import MAX_RECORDS, Round, plan_rounds
from ppdm_core.tuning.setting import Setting, list_settings
from ppdm_core.tuning.utility import Utility, check_applies, choose_default, parse_utilities
from tasks.context import ReleaseContext
from tasks.home_state import HomeState, read_home_state
from tasks.ingest.source_check import open_checked_source
from tasks.sanitize.next_release import ValidatedRecords, validate_records
from tasks.settings_check import list_kinds
from warehouse.code_version import compute_code_version
from warehouse.home import Home
from warehouse.integrity.home_key import home_key
from warehouse.sources import SOURCES
from warehouse.tunes import Records, count_tried_settings

MIN_RECORDS = 50
MAX_SETTINGS = 200
DEFAULT_SETTINGS = 24
ALL_METHODS = "all"
RECORD_LIMIT = f"{AMPLIFICATION}record"
PURPOSE = b"ppdm tunes"  # of the key that tunes draw with


@dataclass(frozen=True)
class TuneOptions:
    """What a steward asks of a tune."""

    utilities: tuple[str, ...] = ()  # "clusters" or "clusters=2"; none: the first that applies
    methods: tuple[str, ...] = ()  # none: that of the release file
    settings: int = DEFAULT_SETTINGS  # at most so many are tried


@dataclass(frozen=True, eq=False)
class TunePlan:
    """A tune before it begins."""

    context: ReleaseContext
    utility: Utility
    settings: tuple[Setting, ...]
    rounds: tuple[Round, ...]
    records: ValidatedRecords  # the sample
    source_digest: str
    total: int  # records of the table
    state: HomeState
    noise: Noise  # of tunes alone
    code_version: str

    @property
    def tried(self) -> int:
        """How many settings were tried on these records when this tune ends, earlier ones too."""
        return self.rounds[-1].policy.tried

    @property
    def identity(self) -> str:
        """Digest of everything that the measurements depend on."""
        context = self.context
        parts = [
            context.dataset,
            self.records.data,
            context.policy.digest,
            self.code_version,
            [setting.digest for setting in self.settings],
            dict(self.utility.weights),
            [str(column) for column in context.columns],
            self.tried,
        ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def select_records(self, count: int) -> ValidatedRecords:
        """Return the first records of the sample; each round continues with those of the last."""
        return select_records(self.records, np.arange(min(count, self.records.rows.n)))


def check_options(context: ReleaseContext, options: TuneOptions) -> Utility:
    """Return the utility; raise BadInput if something that was asked for does not exist."""
    kinds, has_label = list_kinds(context), context.label is not None
    if not 1 <= options.settings <= MAX_SETTINGS:
        raise BadInput(
            f"A tune tries 1 to {MAX_SETTINGS} settings. Got {options.settings}.",
            remedy="Change --settings.",
        )
    for name in options.methods:
        if name != ALL_METHODS:
            check_known("method", name, SANITIZERS)
    if not context.may_tune:
        raise BadInput(
            "The policy forbids to choose settings on the data: 'tuning' of [audit] is false.",
            remedy="Choose the settings without the data, or ask who set the policy.",
        )
    has_numbers = "numeric" in kinds
    if not options.utilities:
        return choose_default(has_label, has_numbers)
    utility = parse_utilities(options.utilities)
    check_applies(utility, has_label, has_numbers)
    return utility


def make_plan(context: ReleaseContext, options: TuneOptions) -> TunePlan:
    """Read and validate the table, draw the sample, and list settings and rounds."""
    utility = check_options(context, options)
    noise, state = read_keys(context)
    name = context.source.name
    source_digest = SOURCES[context.source.kind].digest(context.source)
    with open_checked_source(context, state.columns) as source:
        records = validate_records(source, context, state)
        total = records.rows.n
        sample = draw_sample(records, noise)
    if total < MIN_RECORDS:
        raise BadInput(
            f"A tune needs at least {MIN_RECORDS} records to measure on; {name} has {total}.",
            file=context.source.path or None,
            remedy="Choose the settings without a tune, or add records.",
        )
    settings = tuple(list_plan_settings(context, options))
    with context.open_store().transaction(f"{context.dataset} tune") as db:
        digests = [setting.digest for setting in settings]
        tried = count_tried_settings(
            db, context.dataset, Records(records.data, source_digest), digests
        )
    policy = context.policy.judge_choice(tried)  # as the release after this tune is judged
    rounds = plan_rounds(len(settings), sample.rows.n, policy)
    return TunePlan(
        context,
        utility,
        settings,
        rounds,
        sample,
        source_digest,
        total,
        state,
        noise,
        compute_code_version(),
    )


def read_keys(context: ReleaseContext) -> tuple[Noise, HomeState]:
    """Return the noise of tunes, whose key follows from that of the home, and the home's state."""
    with context.open_store().transaction(f"{context.dataset} tune") as db:
        key = home_key(db).derive(PURPOSE)
    noise = Noise(key).derive("tune", context.dataset)
    state = read_home_state(context)
    # A dataset without a key has no draw yet; a tune does not make the key.
    return noise, state if state.has_key else replace(state, noise=noise)


def draw_sample(records: ValidatedRecords, noise: Noise) -> ValidatedRecords:
    """Return at most ``MAX_RECORDS`` records in random order."""
    rows = records.rows
    ranks = np.concatenate([noise.ranks(block.key, "sample") for block in rows.blocks()])
    places = np.argsort(ranks, kind="stable")[:MAX_RECORDS]
    chosen = np.sort(places)

    def select(block: Block) -> Block:
        low, high = np.searchsorted(chosen, (block.start, block.start + block.n))
        return select_rows(block, chosen[low:high] - block.start)

    sample = load_rows(map(select, rows.blocks()), rows.schema, len(chosen))
    return select_records(replace(records, rows=sample), np.searchsorted(chosen, places))


def select_records(records: ValidatedRecords, places: Ints) -> ValidatedRecords:
    """Return the records at some places, in that order."""
    assert isinstance(records.rows, ArrayRows)
    whole, places = records.rows.whole, np.asarray(places)
    rows = ArrayRows(
        records.rows.schema,
        whole.X[places],
        whole.label[places],
        whole.key[places],
        whole.C[places],
    )
    return replace(records, rows=rows)


def list_plan_settings(context: ReleaseContext, options: TuneOptions) -> list[Setting]:
    """Return the settings to try, the present one first."""
    kinds = list_kinds(context)
    limit = context.policy.limits.get(RECORD_LIMIT)
    scope = SweepScope(
        numeric=kinds.count("numeric"),
        categorical=kinds.count("categorical"),
        gamma=limit.value if limit is not None and limit.value > 1 else None,
        has_ids=context.record_id is not None,
    )
    present = Setting(context.method, context.parameters)
    methods = choose_methods(context.method, options.methods, set(filter(None, kinds)))
    return list_settings(present, methods, scope, options.settings)


def choose_methods(own: str, asked: Sequence[str], kinds: set[str]) -> list[str]:
    """Return the methods to try; "all" stands for those that accept the features."""
    if ALL_METHODS not in asked:
        return list(dict.fromkeys(asked or (own,)))
    suited = [
        name
        for name, cls in SANITIZERS.items()
        if cls.accepts >= kinds and (not cls.is_composite or cls.accepts == kinds)
    ]
    return list(dict.fromkeys((own, *suited)))


def tunes_folder(home: Path) -> Path:
    """Return the private folder of running tunes and their pages."""
    return Home(home).private / "tunes"
