"""The passphrase of a key file, entered in a terminal without echo."""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path

from ppdm_core.model.errors import BadInput

VARIABLE = "PPDM_KEY_PASSPHRASE"


def ask_passphrase(key: Path | None) -> str | None:
    """Ask for the passphrase of a key file before progress is shown.

    Return None without a key file, without a terminal, and if the environment has the passphrase.
    """
    if key is None or not key.is_file() or os.environ.get(VARIABLE) or not sys.stdin.isatty():
        return None
    return getpass.getpass(f"Passphrase of {key.name}: ")


def ask_author_passphrase(key: Path | None) -> str | None:
    """Ask for the passphrase of the key that signs a release: a given file, or $PPDM_KEY."""
    named = os.environ.get("PPDM_KEY")
    return ask_passphrase(key or (Path(named) if named else None))


def choose_passphrase(key: Path) -> str:
    """Return the passphrase for a new key file: from the environment, or entered twice."""
    if VARIABLE in os.environ:
        return os.environ[VARIABLE]
    if not sys.stdin.isatty():
        return ""
    passphrase = getpass.getpass(f"Passphrase for {key.name}: ")
    if passphrase != getpass.getpass("The same again: "):
        raise BadInput("The two passphrases differ.", remedy="Run the command again.")
    return passphrase
