"""The parties of a common release as processes, each with a folder, a home and keys of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.common_release import make_people
from tests.support.forkserver import Command, Result, run_cli, start_cli
from tests.support.shared_trouble import SharedTrouble
from tests.support.small_release import ATTACKS, BY, CLASSES, FEATURES, Row, Small, write_csv
from warehouse.messages.roll import CENTRE

Maker = Callable[..., Small]
ENTRY = "tests.support.entries:killed_at_random"
LIMIT_SECONDS = 1500.0
KILLED, TROUBLE = -9, 5  # exit codes


def make_answers(n: int, seed: int) -> tuple[np.ndarray, list[str]]:
    """Return whole numbers from 0 to 10: one cosine coefficient of a record is not unique."""
    rng = np.random.default_rng(seed)
    code = np.arange(n) % 2
    level = 4.0 + 3.0 * code + rng.normal(0, 0.7, n)
    X = np.clip(np.round(level[:, None] + rng.normal(0, 1.2, (n, len(FEATURES)))), 0, 10)
    return X, [CLASSES[each] for each in code]


@dataclass(frozen=True)
class Method:
    """A method with a policy by which its releases pass, or wait for a reviewer."""

    sanitizer: Mapping[str, Any]
    make: Callable[[int, int], tuple[np.ndarray, list[str]]] = make_people
    required: Sequence[str] = tuple(ATTACKS)
    limits: Mapping[str, float | None] = field(default_factory=dict)


METHODS = {
    "pca_laplace": Method(
        {"components": 1, "b": 0.3, "basis": "sample", "basis_share": 0.2},
    ),
    "kde_resample": Method(
        {"bandwidth": "floor", "floor": 0.9, "clip": False},
        required=("transform_inverse", "record_linkage", "membership"),
        limits={"known_pairs.breach_rate": None, "transform_inverse.breach_rate": 0.1},
    ),
    # So few columns of whole numbers that no limit judges membership: reviewers decide.
    "dct_fuzzy": Method(
        {"b": 0.3, "p": 0.5}, make_answers, ("known_pairs", "record_linkage", "membership")
    ),
}


def make_rows(site: str, X: np.ndarray, moods: Sequence[str]) -> list[Row]:
    """Return the rows of a table with ids and notes that must not leave the site."""
    return [
        {
            "person": f"{site}-{i:05d}",
            "mood": mood,
            "notes": f"canary {site} {i}",
            **dict(zip(FEATURES, map(repr, values), strict=True)),
        }
        for i, (values, mood) in enumerate(zip(X.tolist(), moods, strict=True))
    ]


class PartyProcesses:
    """The parties of one common release; every command is a process."""

    def __init__(
        self,
        folder: Path,
        make: Maker,
        method: str,
        sizes: Mapping[str, int],
        tests: int = 0,
        shared: Path | None = None,
    ) -> None:
        self.folder, self.method, self.sizes = folder, METHODS[method], sizes
        self.shared = shared or folder / "shared"
        self.shared.mkdir(parents=True)
        self.tables = {
            site: self.method.make(n + tests, number)
            for number, (site, n) in enumerate(sorted(sizes.items()))
        }
        self.parties: dict[str, Small] = {}
        for name in (CENTRE, *sizes):
            party = make(folder / name, "ward", [])
            party.content["sanitizer"] = {"method": method, **self.method.sanitizer}
            party.content["audit"]["required"] = list(self.method.required)
            limits = party.content["limits"]
            limits["amplification.record"]["waive"] = [method]
            for check, value in self.method.limits.items():
                if value is None:
                    del limits[check]
                else:
                    limits[check] = {"value": value, **BY}
            if name != CENTRE:
                X, moods = self.tables[name]
                rows = make_rows(name, X, moods)
                party.rows = rows[: sizes[name]]
                party.write()
                if tests:
                    write_csv(party.folder / "test.csv", rows[sizes[name] :])
            else:
                party.rows = make_rows("nobody", np.full((1, len(FEATURES)), 5.0), CLASSES[:1])
                party.write().table.unlink()  # the centre has no table
            self.parties[name] = party
        self.keys: dict[str, bytes] = {}
        self.messages: dict[str, bytes] = {}
        self.has_tests = tests > 0

    def role(self, name: str) -> str:
        return "centre" if name == CENTRE else "site"

    def ask(self, name: str, command: str, *args: str) -> Result:
        """Run a command of a party to its end."""
        party = self.parties[name]
        given = ["", self.role(name), command, str(party.file), *args, "--json"]
        return run_cli(given, env=party.env, entry=ENTRY, timeout=LIMIT_SECONDS)

    def start(self, name: str, seed: str = "", wait: float = 900.0, entry: str = ENTRY) -> Command:
        party = self.parties[name]
        given = [seed, self.role(name), "run", str(party.file), "--wait", str(wait), "--json"]
        return start_cli(given, env=party.env, entry=entry)

    def join(self) -> None:
        """Let every party pin the fingerprints of all others."""
        prints = {}
        for name in self.parties:
            prints[name] = json.loads(self.ask(name, "status").stdout)["fingerprint"]
        self.prints = prints
        pins = [part for site in self.sizes for part in ("--site", f"{site}={prints[site]}")]
        folder = ("--folder", str(self.shared))
        assert self.ask(CENTRE, "init", *folder, *pins).exit_code == 0
        for site in self.sizes:
            path = self.parties[site].folder / "test.csv"
            test = ("--test", str(path)) if self.has_tests else ()
            given = ("--name", site, *folder, "--centre", prints[CENTRE], *pins, *test)
            joined = self.ask(site, "join", *given)
            assert joined.exit_code == 0, joined

    def decide(self, name: str, user: int, *args: str) -> Result:
        """Decide about what waits at a site, as another user of the system."""
        party = self.parties[name]
        env = {**party.env, "PPDM_HOME": str(party.home)}
        given = [str(user), "decide", "ward-0001", *args, "--note", "I looked.", "--json"]
        return run_cli(given, env=env, entry="tests.support.entries:as_user", timeout=600)

    def run_all(
        self,
        kills: int = 0,
        on_review: Callable[[str], None] | None = None,
        trouble: SharedTrouble | None = None,
    ) -> Any:
        """Run all parties at the same time until each has ended; return their last results.

        A process that was killed is started again. ``on_review`` is called for a site that waits
        for its reviewers, which then runs again. After a ``trouble``, the same command continues.
        """
        deaths = 0
        running = {
            name: self.start(name, f"{name} {kills}" if kills else "") for name in self.parties
        }
        ended: dict[str, Result] = {}
        stopped: list[str] = []
        deadline = time.monotonic() + LIMIT_SECONDS
        while running or stopped:
            assert time.monotonic() < deadline, {
                name: each.output() for name, each in running.items()
            }
            self.keep_keys()
            self.watch_messages()
            if trouble is not None:
                trouble.watch()
                if not trouble.holds:
                    running |= {name: self.start(name) for name in stopped}
                    stopped.clear()
            time.sleep(0.1)
            for name, command in list(running.items()):
                if command.is_running:
                    continue
                result = command.wait()
                if result.exit_code == KILLED:
                    deaths += 1
                    seed = f"{name} {deaths}" if deaths < kills else ""
                    running[name] = self.start(name, seed)
                elif result.exit_code == 4 and on_review is not None:
                    on_review(name)
                    running[name] = self.start(name)
                elif result.exit_code == TROUBLE and trouble is not None and trouble.holds:
                    trouble.record(name, result)
                    stopped.append(name)
                    del running[name]
                else:
                    ended[name] = running.pop(name) and result
        self.deaths = deaths
        return ended

    def keep_keys(self) -> None:
        """Keep the keys of the session, to look into its messages when it has ended."""
        for name, party in self.parties.items():
            path = party.private / "exchanges" / "ward" / "0001" / "exchange.key"
            if name not in self.keys and path.exists() and (text := path.read_text().strip()):
                self.keys[name] = bytes.fromhex(text)

    def watch_messages(self) -> None:
        """Check that no message is ever replaced by one with another content."""
        for path in self.shared.glob("ward/0001/*"):
            if path.suffix in (".msg", ".json"):
                with suppress(FileNotFoundError):  # the folder is taken away by a test
                    raw = path.read_bytes()
                    assert self.messages.setdefault(path.name, raw) == raw, path.name

    def find_published(self, name: str = CENTRE) -> Path:
        return self.parties[name].published / "0001"
