"""`ppdm key`: back up, restore and export keys."""

from __future__ import annotations

import os
from pathlib import Path

from ppdm.cli.home import check_new_file, open_home
from ppdm.cli.replies.others import KeyReply
from ppdm.cli.result import CommandResult


def back_up_key(dataset: str, out: Path, home: Path | None) -> CommandResult:
    """Write the key of a dataset, or of the home if ``dataset`` is empty, to a new file."""
    from warehouse.integrity.dataset_key import backup_key, find_dataset_key, find_home_key

    store = open_home(home)
    file = find_dataset_key(store, dataset) if dataset else find_home_key(store)
    fingerprint = backup_key(store, file, out)
    name = dataset or "this home"
    text = f"The key of {name} ({fingerprint}) is in {out}. Store that file on another machine."
    return CommandResult(text, KeyReply(dataset=dataset, fingerprint=fingerprint).as_payload())


def restore_key_backup(file: Path, home: Path | None) -> CommandResult:
    """Restore a key from the file that a backup wrote."""
    from warehouse.integrity.dataset_key import restore_key

    dataset = restore_key(open_home(home), file).dataset
    text = f"The key of {dataset or 'this home'} is restored."
    return CommandResult(text, KeyReply(dataset=dataset).as_payload())


def export_public_key(out: Path, home: Path | None) -> CommandResult:
    """Write the public key that verifies the signatures of this home to a new file."""
    from ppdm.release_folder import read_public_key
    from ppdm_core.model.manifest import key_fingerprint
    from warehouse.home import translate_disk_errors
    from warehouse.integrity import dataset_key

    store = open_home(home)
    check_new_file(out)
    pem = dataset_key.export_public_key(store)
    with translate_disk_errors(out.parent):
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
    fingerprint = key_fingerprint(read_public_key(out))
    text = (
        f"The public key ({fingerprint}) is in {out}. Give it to recipients by another way than "
        "the folders that it verifies."
    )
    return CommandResult(text, KeyReply(fingerprint=fingerprint, file=str(out)).as_payload())
