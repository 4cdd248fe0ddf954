"""Broken attacks. Python reads this file at its start, as ``sitecustomize``, in every process that
has its copy on PYTHONPATH; only the attacking process is changed, when it loads the attacks."""

from __future__ import annotations

import os
import sys
from typing import Any

KIND, _, NAME = os.environ.get("PPDM_TESTS_MUTANT", "").partition(" ")


class Mutant:
    def __init__(self, attack: Any) -> None:
        self.attacker = attack
        self.name, self.story, self.file_story = attack.name, attack.story, attack.file_story
        self.goal, self.needs, self.reads = attack.goal, attack.needs, attack.reads
        self.must_notice, self.leak_variant = attack.must_notice, attack.leak_variant
        self.in_every_audit = attack.in_every_audit
        self.runs_half_known = attack.runs_half_known

    def attack(self, view: Any, rng: Any) -> Any:
        if KIND == "raising":
            raise ArithmeticError("an error that quotes a cell")
        if KIND == "hanging":
            import time

            time.sleep(600)
        if KIND == "dying":
            os._exit(0)
        estimate = self.attacker.attack(view, rng)
        candidates = dict(estimate.candidates)
        if KIND == "printing":
            os.write(1, b"0123456789" * 10)
            print("an answer", flush=True)
        if KIND == "empty":
            candidates = {}
        if KIND in ("nan", "infinity"):
            last = list(candidates)[-1]
            candidates[last] = 0 * candidates[last] + float(KIND)
        return type(estimate)(candidates)


def mutate() -> None:
    from ppdm_core.attacks import ATTACKS
    from tasks.audit import attack_worker as audit_worker

    if KIND == "removed":
        del ATTACKS[NAME]
    else:
        ATTACKS[NAME] = Mutant(ATTACKS[NAME])
    if KIND == "scoreless":
        answer_nothing(audit_worker)


def answer_nothing(worker: Any) -> None:
    from ppdm_core.audit.runner import Attempt

    asked, receive, send = [], worker.receive, worker.send

    def received(stream: Any) -> Any:
        asked.append(receive(stream))
        return asked[-1]

    def sent(stream: Any, answer: Any) -> None:
        send(stream, Attempt(()) if asked[-1] == NAME else answer)

    worker.receive, worker.send = received, sent


class AtTheAudit:
    """An import hook that mutates just before the audit is imported."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "ppdm_core.audit.auditor":
            sys.meta_path.remove(self)  # type: ignore[arg-type]
            mutate()


if KIND and "tasks.audit.attack_worker" in sys.orig_argv:
    sys.meta_path.insert(0, AtTheAudit())  # type: ignore[arg-type]
