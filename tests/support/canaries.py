"""What must not leave a site, and the search for it in everything that left."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from flows.config.context import build_context
from flows.config.release_file import load
from ppdm_core.model.release import Released
from tasks.audit.attack_inputs import make_job, read_inputs
from tasks.sanitize.release_writer import make_unscaler
from tests.support.small_release import Small

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class Canaries:
    """Texts and numbers of one party by kind."""

    texts: dict[str, list[bytes]] = field(default_factory=dict)
    numbers: dict[str, frozenset[float]] = field(default_factory=dict)

    def find(self, contents: Iterable[bytes]) -> set[str]:
        """Return the kinds of which any text or number occurs in the contents."""
        text = b"\n".join(contents)
        sent = frozenset(float(each) for each in NUMBER.findall(text))
        found = {kind for kind, each in self.texts.items() if any(part in text for part in each)}
        return found | {kind for kind, each in self.numbers.items() if each & sent}


def spell_key(key: bytes) -> list[bytes]:
    """Return a key in all forms in which it could stand in a file."""
    texts = [key.hex(), key.hex().upper(), base64.b64encode(key).decode().rstrip("=")]
    return [key, *(text.encode() for text in texts)]


def read_draws(party: Small, work: Path) -> dict[str, frozenset[float]]:
    """Return the numbers of the shadow draws and half draws of a site's audit, as if released.

    They are drawn again from its warehouse and its key.
    """
    context = build_context(load(party.file))
    with context.open_run("ward-0001") as (db, run):
        inputs = read_inputs(db, context, run, work)
    job = make_job(context, run, inputs)
    undo = make_unscaler(job.scaling, inputs.sanitized.public)

    def read(released: Iterable[Released]) -> frozenset[float]:
        blocks = [block.X for each in released for block in each.rows.blocks()]
        return frozenset(np.concatenate([undo(X) for X in blocks]).ravel().tolist())

    return {
        "shadow draws": read(job.shadows.shadows),
        "half draws": read(half.released for half in job.shadows.halves),
    }


def list_texts(party: Small, kinds: Mapping[str, str]) -> dict[str, list[bytes]]:
    """Return the texts of some columns of a party's table, and its keys, by kind."""
    texts = {
        kind: [str(row[column]).encode() for row in party.rows] for kind, column in kinds.items()
    }
    for path in (party.private / "keys").iterdir():
        texts[f"key {path.name}"] = spell_key(bytes.fromhex(path.read_text().strip()))
    return texts
