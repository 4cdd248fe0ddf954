"""What the commands of common releases print with `--json`."""

from __future__ import annotations

from ppdm.cli.replies.base import Model


class MessageBody(Model):
    """A message that was sent or accepted."""

    kind: str
    sender: str
    receiver: str
    number: int


class PartyReply(Model):
    """`site join`, `site run`, `site status` and the same of `centre`."""

    party: str | None = None  # None: this home takes no part yet
    dataset: str | None = None
    fingerprint: str | None = None
    folder: str | None = None
    sites: dict[str, str] | None = None  # name -> pinned fingerprint
    session: str | None = None
    roll: str | None = None  # digest; None: it is not signed yet
    messages: list[MessageBody] | None = None
    last_outcome: str | None = None  # of the session that ended last
    outcome: str | None = None  # of a run: "published" or "awaiting_review"
