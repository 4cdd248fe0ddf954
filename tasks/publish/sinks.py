"""The sinks of a release file, as publishing needs them."""

from __future__ import annotations

import hmac
import secrets

from ppdm_core.model.errors import BadInput
from ppdm_core.numerics.noise import Noise
from tasks.context import ReleaseContext
from warehouse.database import Run, Store
from warehouse.integrity.dataset_key import dataset_noise
from warehouse.sinks import SINKS, Delivery, FileSink, ServerSink, SinkSettings

TOKEN_DIGITS = 32


def list_file_sinks(context: ReleaseContext) -> tuple[SinkSettings, ...]:
    """Return the sinks that are further files of a version."""
    return tuple(each for each in context.sinks if isinstance(SINKS[each.kind], FileSink))


def list_deliveries(context: ReleaseContext, run: Run, noise: Noise) -> tuple[Delivery, ...]:
    """Return the sinks on servers; ``noise`` is that of the dataset, whose key hides the names."""
    return build_deliveries(context, run.release_id, f"{run.number:04d}", noise.subkey("sinks"))


def build_deliveries(
    context: ReleaseContext, release_id: str, version: str, key: bytes
) -> tuple[Delivery, ...]:
    """Return a version in each sink on a server; the tokens follow from the key."""
    found = []
    for each in context.sinks:
        if isinstance(SINKS[each.kind], ServerSink):
            words = f"{release_id} {each.kind} {each.options.get('url')}"
            token = hmac.new(key, words.encode(), "sha256").hexdigest()[:TOKEN_DIGITS]
            options = dict(each.options)
            found.append(Delivery(each.kind, options, context.dataset, release_id, version, token))
    return tuple(found)


def check_targets(store: Store, context: ReleaseContext, run: Run) -> None:
    """Check that every server of a release can take it; raise BadInput that names the sink."""
    if has_servers(context):
        with store.transaction(run.release_id) as db:
            deliveries = list_deliveries(context, run, dataset_noise(db, context.dataset))
        check_each_target(deliveries)


def check_servers(context: ReleaseContext) -> None:
    """Check the servers of a release before it has a number."""
    if has_servers(context):
        key = secrets.token_bytes()
        check_each_target(build_deliveries(context, f"{context.dataset}-0000", "0000", key))


def has_servers(context: ReleaseContext) -> bool:
    """Return whether a sink is on a server."""
    return any(isinstance(SINKS[each.kind], ServerSink) for each in context.sinks)


def check_each_target(deliveries: tuple[Delivery, ...]) -> None:
    """Check that every server can take a delivery; raise BadInput that names the sink."""
    for each in deliveries:
        sink = SINKS[each.kind]
        assert isinstance(sink, ServerSink)
        try:
            sink.check_target(each)
        except BadInput as error:
            raise error.in_file(f"[[sinks]] {each.kind}") from None
