"""The base of all replies."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A part of a reply; keys that it does not declare are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def as_payload(self) -> dict[str, Any]:
        """Return the keys that were set, as JSON values."""
        return self.model_dump(mode="json", exclude_unset=True)


class OtherErrorBody(Model):
    """A further error in the same input."""

    message: str
    file: str | None
    column: str | None
    remedy: str | None


class ErrorBody(OtherErrorBody):
    """Why a command did not succeed; the first error if there are several."""

    kind: str
    others: list[OtherErrorBody]
