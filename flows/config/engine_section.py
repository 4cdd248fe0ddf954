"""The [engine] section of a release file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from ppdm_core.model.errors import BadInput, ErrorList
from ppdm_core.settings.errors import report_as_value_error
from ppdm_core.settings.sections import Section
from warehouse.engines import ENGINES, EngineSettings

if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[tuple(ENGINES)]  # the form lists the choices

FILES = ("ca", "certificate", "private_key", "secret")
OF_A_CLUSTER = ("address", *FILES, "folder")


class EngineSpec(Section):
    """Where the release is computed; its bytes are the same everywhere."""

    kind: Kind = Field(
        default="local",
        description="local: processes of this machine; dask: a cluster of machines.",
    )
    workers: int | None = Field(
        default=None, ge=1, description="Number of processes or workers; default: all there are."
    )
    address: str = Field(
        default="",
        description="Scheduler of the cluster, tls://HOST:PORT; default: the cluster that "
        "`ppdm cluster up` started.",
    )
    ca: str = Field(default="", description="File of the certificate of the cluster's authority.")
    certificate: str = Field(default="", description="File of a certificate that it signed.")
    private_key: str = Field(default="", description="File of the key of the certificate.")
    secret: str = Field(
        default="", description="File of the cluster key, which seals messages; workers have it."
    )
    folder: str = Field(
        default="",
        description="Folder that all workers reach, for private parts; default: in the home.",
    )

    @model_validator(mode="after")
    @report_as_value_error
    def _check_keys_of_kind(self) -> EngineSpec:
        errors = ErrorList()
        if "://" in self.folder:
            errors.add(
                BadInput(
                    "The 'folder' key of [engine] is a URL; parts need a folder of the machines.",
                    remedy="Mount it on all of them, and name the path.",
                )
            )
        if self.kind == "local":
            for name in filter(self._is_given, OF_A_CLUSTER):
                errors.add(
                    BadInput(
                        f"The '{name}' key of [engine] needs a cluster.",
                        remedy=f"Remove '{name}', or write kind = \"dask\".",
                    )
                )
        elif self.address:
            errors.found += self._list_cluster_problems()
        else:
            for name in filter(self._is_given, FILES):
                errors.add(
                    BadInput(
                        f"The '{name}' key of [engine] needs an 'address'.",
                        remedy="Add 'address', or remove the key to use `ppdm cluster up`.",
                    )
                )
        errors.raise_all()
        return self

    def _is_given(self, name: str) -> bool:
        return bool(getattr(self, name))

    def _list_cluster_problems(self) -> list[BadInput]:
        found = []
        if not is_tls_address(self.address):
            found.append(
                BadInput(
                    f"The 'address' key of [engine] must be tls://HOST:PORT. Got '{self.address}'.",
                    remedy="Start the scheduler with certificates; there is no way without TLS.",
                )
            )
        found += [
            BadInput(
                f"The engine 'dask' needs '{name}' in [engine].",
                remedy=f"Add '{name}', a path.",
            )
            for name in FILES
            if not self._is_given(name)
        ]
        return found

    def build(self, folder: str | Path) -> EngineSettings:
        """Return the settings; relative paths start at a folder."""

        def resolve(path: str) -> str:
            return os.path.abspath(os.path.join(folder, path)) if path else ""

        return EngineSettings(
            kind=self.kind,
            workers=self.workers,
            address=self.address,
            ca=resolve(self.ca),
            certificate=resolve(self.certificate),
            private_key=resolve(self.private_key),
            secret=resolve(self.secret),
            folder=resolve(self.folder),
        )


def is_tls_address(address: str) -> bool:
    """Return whether an address is tls://HOST:PORT."""
    try:
        parts = urlsplit(address)
        return parts.scheme == "tls" and bool(parts.hostname) and parts.port is not None
    except ValueError:  # a port that is no number
        return False
