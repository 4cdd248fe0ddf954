"""A common release of several sites by the steps of the flows, without Prefect.

Every party has a home, keys and a warehouse of its own. All run in one process, each as far as the
messages of the others let it, again and again from its first step: as if each was killed at every
message.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit

from flows.config.context import build_context
from flows.config.release_file import load
from flows.sites import close_at_end
from ppdm_core.model.errors import PpdmError
from ppdm_core.model.manifest import key_fingerprint
from tasks.audit.task import attack_shadows
from tasks.centre.task import collect_rows, judge_by_sites, lead_fit, pool_rows, publish_pool
from tasks.context import ReleaseContext
from tasks.ingest.task import load_raw
from tasks.judge.task import judge
from tasks.publish.task import publish_candidate
from tasks.sanitize.task import draw_candidate
from tasks.sites.exchange import Exchange, StillWaiting
from tasks.sites.task import (
    agree_on_fit,
    begin_part,
    check_classes,
    end_part,
    enter_release,
    judge_pool,
    send_rows,
)
from tasks.sites.terms import list_rounds
from tests.support.contexts import create_home, write_unchecked
from tests.support.small_release import CLASSES, CONTENT, FEATURES
from warehouse.database import find_run
from warehouse.integrity.home_key import home_key
from warehouse.messages.membership import Membership, store_membership
from warehouse.messages.roll import CENTRE
from warehouse.stages import Stage, is_past

METHODS: dict[str, dict[str, Any]] = {
    "kde_resample": {"bandwidth": "floor", "floor": 0.9, "rows": 120},
    "dct_fuzzy": {"b": 0.1, "p": 0.2},
    "pca_laplace": {"components": 1, "b": 0.3, "basis": "sample", "basis_share": 0.2},
}


def make_people(n: int, seed: int) -> tuple[np.ndarray, list[str]]:
    """Return records of two classes along one direction."""
    rng = np.random.default_rng(seed)
    code = np.arange(n) % 2
    level = 3.0 + 4.0 * code + rng.normal(0, 0.4, n)
    X = level[:, None] + rng.normal(0, 0.3, (n, len(FEATURES)))
    return X, [CLASSES[each] for each in code]


def write_people(path: Path, X: np.ndarray, moods: list[str], prefix: str) -> None:
    lines = [
        f"{prefix}-{i:05d},{mood},note,{','.join(map(repr, row))}"
        for i, (row, mood) in enumerate(zip(X.tolist(), moods, strict=True))
    ]
    path.write_text("\n".join([f"person,mood,notes,{','.join(FEATURES)}", *lines]) + "\n")


@dataclass
class CommonRelease:
    """The parties of one common release and how far each has come."""

    folder: Path
    method: str = "kde_resample"
    sites: Mapping[str, int] = field(
        default_factory=lambda: {"east": 130, "north": 150, "south": 170}
    )
    parameters: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.shared = self.folder / "shared"
        self.shared.mkdir(parents=True)
        self.contexts = {name: self.make_context(name) for name in (CENTRE, *self.sites)}
        self.pins = {name: self.find_fingerprint(name) for name in self.contexts}
        for name in self.contexts:
            self.join(name, self.pins)
        self.ended: dict[str, Any] = {}

    def make_context(self, name: str) -> ReleaseContext:
        folder = self.folder / name
        folder.mkdir()
        if name != CENTRE:
            seed = sorted(self.sites).index(name)
            write_people(folder / "t.csv", *make_people(self.sites[name], seed), name)
        content = copy.deepcopy(CONTENT)
        content["dataset"]["name"] = "ward"
        content["source"]["path"] = "t.csv"
        content["sanitizer"] = {"method": self.method, **(self.parameters or METHODS[self.method])}
        (folder / "release.toml").write_text(tomlkit.dumps(content))
        create_home(folder / ".ppdm")
        return build_context(load(folder / "release.toml"))

    def find_fingerprint(self, name: str) -> str:
        with self.contexts[name].open_store().transaction("tests") as db:
            return key_fingerprint(home_key(db).signing().public_key())

    def join(self, name: str, pins: Mapping[str, str]) -> None:
        home = self.contexts[name].open_store().home
        store_membership(home, Membership(name, "ward", str(self.shared), dict(pins)))

    def enter(self, name: str) -> Exchange:
        return enter_release.fn(self.contexts[name], 0.0, name == CENTRE)

    def run_centre(self) -> Stage:
        """Run all steps of the centre; raise StillWaiting where a message is missing."""
        context, exchange = self.contexts[CENTRE], self.enter(CENTRE)
        with close_at_end(exchange):
            for each in list_rounds(context):
                lead_fit.fn(context, exchange, each)
            parts = collect_rows.fn(context, exchange)
            release_id = pool_rows.fn(context, exchange, parts, None)
            judge_by_sites.fn(context, release_id, exchange, parts)
            return publish_pool.fn(context, release_id, exchange)

    def draw_part(self, name: str) -> tuple[ReleaseContext, str, Exchange]:
        """Run the steps of a site up to its candidate."""
        context, exchange = self.contexts[name], self.enter(name)
        release_id = begin_part.fn(context, exchange, None)
        load_raw.fn(context, release_id)
        with context.open_store().transaction("tests") as db:
            run = find_run(db, release_id)
        assert run is not None
        if not is_past(run.stage, Stage.VALIDATED):
            write_unchecked(context, release_id)
        check_classes.fn(context, release_id)
        for each in list_rounds(context):
            context = agree_on_fit.fn(context, release_id, exchange, each)
        draw_candidate.fn(context, release_id)
        return context, release_id, exchange

    def run_site(self, name: str) -> None:
        """Run all steps of a site; raise StillWaiting where a message is missing."""
        context, release_id, exchange = self.draw_part(name)
        attack_shadows.fn(context, release_id)
        judge.fn(context, release_id)
        publish_candidate.fn(context, release_id, False)
        send_rows.fn(context, release_id, exchange)
        judge_pool.fn(context, release_id, exchange)
        with close_at_end(exchange):
            end_part.fn(exchange)

    def run_all(self, run: Callable[[str], Any], rounds: int = 20) -> dict[str, Any]:
        """Run every party again and again until all have ended, or none goes on."""
        names = (CENTRE, *self.sites)
        for _ in range(rounds):
            for name in names:
                if name in self.ended:
                    continue
                try:
                    self.ended[name] = run(name)
                except StillWaiting:
                    continue
                except PpdmError as error:
                    self.ended[name] = error
            if len(self.ended) == len(names):
                break
        return self.ended

    def draw_all(self) -> dict[str, tuple[ReleaseContext, str, Exchange]]:
        """Agree on the fit, and draw the candidates of all sites."""
        found = {}
        for _ in range(8):
            with suppress(StillWaiting):
                self.run_centre()
            for name in self.sites:
                if name not in found:
                    with suppress(StillWaiting):
                        found[name] = self.draw_part(name)
        assert len(found) == len(self.sites)
        return found

    def change(self, name: str, **changes: Any) -> None:
        self.contexts[name] = replace(self.contexts[name], **changes)
