"""Where the steps of a release run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ppdm_core.model.errors import BadInput, MachineTrouble


@dataclass(frozen=True)
class EngineSettings:
    """Where steps run; all paths are absolute."""

    kind: str = "local"
    workers: int | None = None  # None: as many as there are cores, or workers of the cluster
    address: str = ""
    ca: str = ""  # certificate of the cluster's authority
    certificate: str = ""  # of this client
    private_key: str = ""  # that belongs to the certificate
    secret: str = ""  # file of the key that seals messages
    folder: str = ""  # for parts; "": below the home
    part_blocks: int | None = None  # None: chosen by the size of the table


@contextmanager
def translate_bad_input() -> Iterator[None]:
    """Turn bad input into a problem of the machines: the settings were checked before."""
    try:
        yield
    except BadInput as error:
        raise MachineTrouble(error.message, file=error.file, remedy=error.remedy) from None
