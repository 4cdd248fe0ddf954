"""What the commands of common releases print with `--json`."""

from __future__ import annotations

from ppdm.cli.replies.base import Model
from ppdm.cli.replies.releases import ReleaseReply


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
    in_review: str | None = None  # a site's release, if the pool with it waits for reviewers
    outcome: str | None = None  # of a run: "published" or "awaiting_review"


class PoolDecisionBody(Model):
    """A decision of a site about the pool of a common release."""

    release_id: str  # of the site
    choice: str
    approvals: int
    approvals_missing: int


class DecideReply(ReleaseReply):
    """`decide`: the release, or a decision about the pool that it is a part of."""

    pool: PoolDecisionBody | None = None
