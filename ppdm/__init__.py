"""Audit, release, verify and load privacy-perturbed tables.

    report = ppdm.audit("patients.csv", "noisy.csv")      attack a release that any tool made
    result = ppdm.release("patients.toml")                run the release that a file describes
    ppdm.verify("published/wdbc/0001", "steward.pem")     check every byte and the signature
    release = ppdm.load("published/wdbc/0001")            read a release, to mine it

``audit``, ``verify`` and ``load`` import nothing of the pipeline; ``release`` runs it in another
process. Errors are subclasses of ``PpdmError``. Everything is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ppdm.release_folder import LoadedRelease, load, verify
    from ppdm.release_process import ReleaseResult, release
    from ppdm.table_audit import Report, audit
    from ppdm_core.model.errors import (
        BadInput,
        Defect,
        MachineTrouble,
        PpdmError,
        Refused,
        Undecided,
    )
    from ppdm_core.model.manifest import Verified

__all__ = [
    "BadInput",
    "Defect",
    "LoadedRelease",
    "MachineTrouble",
    "PpdmError",
    "Refused",
    "ReleaseResult",
    "Report",
    "Undecided",
    "Verified",
    "audit",
    "load",
    "release",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import ppdm` is fast."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ppdm import release_folder, release_process, table_audit
    from ppdm_core.model import errors, manifest

    places = (table_audit, release_folder, release_process, manifest, errors)
    return next(vars(place)[name] for place in places if name in vars(place))
