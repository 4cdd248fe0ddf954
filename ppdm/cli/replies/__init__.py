"""What each command prints with `--json`, as models: `ppdm schema NAME` publishes their schemas.

A change that breaks readers increases ``SCHEMA_VERSION``. Figures are numbers; None stands for a
figure that was not measured, or that is infinite.
"""

from __future__ import annotations

from collections.abc import Mapping

from ppdm.cli.replies.base import ErrorBody, Model
from ppdm.cli.replies.checks import CheckReply
from ppdm.cli.replies.others import (
    ClusterReply,
    DoctorReply,
    EmptyReply,
    ExamplesReply,
    HistoryReply,
    InitReply,
    KeyReply,
    MethodsReply,
    ReportReply,
    ReviewerReply,
    SchemaReply,
    SelfTestReply,
    ServersReply,
    StoppedReply,
    VerifyReply,
)
from ppdm.cli.replies.releases import (
    AuditReply,
    DemoReply,
    DiffReply,
    LedgerReply,
    ReleaseReply,
    StatusReply,
)
from ppdm.cli.replies.reproductions import ReproduceReply
from ppdm.cli.replies.sites import DecideReply, PartyReply
from ppdm.cli.replies.tunes import TuneReply

REPLIES: Mapping[str, type[Model]] = {
    "init": InitReply,
    "check": CheckReply,
    "tune": TuneReply,
    "release": ReleaseReply,
    "decide": DecideReply,
    "withdraw": ReleaseReply,
    "status": StatusReply,
    "show": ReleaseReply,
    "diff": DiffReply,
    "report": ReportReply,
    "ledger": LedgerReply,
    "history": HistoryReply,
    "verify": VerifyReply,
    "audit": AuditReply,
    "self-test": SelfTestReply,
    "methods": MethodsReply,
    "schema": SchemaReply,
    "up": ServersReply,
    "down": StoppedReply,
    "serve": EmptyReply,
    "doctor": DoctorReply,
    "examples": ExamplesReply,
    "demo": DemoReply,
    "reproduce": ReproduceReply,
    "cluster": ClusterReply,
    "key": KeyReply,
    "reviewer": ReviewerReply,
    "site": PartyReply,
    "centre": PartyReply,
}

__all__ = ["REPLIES", "ErrorBody", "Model"]
