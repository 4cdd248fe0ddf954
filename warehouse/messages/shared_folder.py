"""The folder that the centre and all sites can read and write; nothing in it is trusted."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ppdm_core.model.errors import BadInput, MachineTrouble
from warehouse.home import sync, translate_disk_errors
from warehouse.messages.envelope import MAX_MESSAGE_BYTES, refuse_stray

MOUNT = "Mount it, and run the same command again: it continues."


@dataclass(frozen=True)
class SharedFolder:
    """The files of one release in the shared folder."""

    root: Path
    dataset: str
    session: str

    @property
    def folder(self) -> Path:
        return self.root / self.dataset / self.session

    def put(self, name: str, raw: bytes, *, replaces: bool = False) -> None:
        """Write a file all or nothing; the same bytes may be there already.

        Others may not, unless the file ``replaces`` them.
        """
        self.check()
        found = self.find(name)
        if found == raw:
            return
        if found is not None and not replaces:
            raise refuse_stray(name, "is in the shared folder already, with another content")
        draft = self.folder / f".{name}.{os.getpid()}.tmp"
        with translate_disk_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            for leftover in self.folder.glob(f".{name}.*.tmp"):  # of a killed process
                leftover.unlink(missing_ok=True)
            try:
                draft.write_bytes(raw)
                sync(draft)
                draft.rename(self.folder / name)
            finally:
                draft.unlink(missing_ok=True)  # a part of it would take the place on a full disk
            sync(self.folder)

    def find(self, name: str) -> bytes | None:
        """Return the content of a file, or None if it is not there yet."""
        self.check()
        path = self.folder / name
        try:
            if path.is_symlink() or (path.exists() and not path.is_file()):
                raise refuse_stray(name, "is a link or a folder")
            if path.stat().st_size > MAX_MESSAGE_BYTES:
                raise refuse_stray(name, f"is larger than {MAX_MESSAGE_BYTES >> 20:,} MB")
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise MachineTrouble(
                f"{name} cannot be read from the shared folder: {error.strerror}.",
                file=str(path),
                remedy="Check the folder, and run the same command again: it continues.",
            ) from None

    def check(self) -> None:
        """Raise MachineTrouble if the folder is gone."""
        if not self.root.is_dir():
            raise MachineTrouble(
                f"The shared folder {self.root} is not there.",
                file=str(self.root),
                remedy=MOUNT,
            )

    def check_begun(self) -> None:
        """Raise MachineTrouble if the files of a release that was begun are gone.

        The folder below which another one is mounted is empty without it.
        """
        self.check()
        if not self.folder.is_dir():
            raise MachineTrouble(
                f"The shared folder {self.root} lacks the files of release {self.session}.",
                file=str(self.folder),
                remedy=MOUNT,
            )


def check_new_root(root: Path) -> Path:
    """Return the absolute path of a shared folder that a person names; it must exist."""
    if not root.is_dir():
        raise BadInput(
            f"The shared folder {root} does not exist.",
            file=str(root),
            remedy="Name a folder that the centre and all sites can read and write: --folder DIR",
        )
    return root.resolve()
