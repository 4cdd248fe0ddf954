"""The sinks of a release file, as publishing needs them."""

from __future__ import annotations

import hmac

from ppdm_core.model.errors import BadInput
from ppdm_core.numerics.noise import Noise
from tasks.context import ReleaseContext
from warehouse.database import Run, Store
from warehouse.integrity.dataset_key import dataset_noise
from warehouse.sinks import SINKS, Delivery, FileSink, ServerSink

TOKEN_BYTES = 16


def list_file_sinks(context: ReleaseContext) -> tuple[str, ...]:
    """Return the sinks that are further files of a version."""
    return tuple(each.kind for each in context.sinks if isinstance(SINKS[each.kind], FileSink))


def list_deliveries(context: ReleaseContext, run: Run, noise: Noise) -> tuple[Delivery, ...]:
    """Return the sinks on servers; ``noise`` is that of the dataset, whose key hides the names."""
    found = []
    for each in context.sinks:
        if isinstance(SINKS[each.kind], ServerSink):
            words = f"{run.release_id} {each.kind} {each.options.get('url')}"
            token = hmac.new(noise.subkey("sinks"), words.encode(), "sha256").digest()
            found.append(
                Delivery(
                    kind=each.kind,
                    options=dict(each.options),
                    dataset=run.dataset,
                    release_id=run.release_id,
                    version=f"{run.number:04d}",
                    token=token[:TOKEN_BYTES].hex(),
                )
            )
    return tuple(found)


def check_targets(store: Store, context: ReleaseContext, run: Run) -> None:
    """Check that every server of a release can take it; raise BadInput that names the sink."""
    if len(list_file_sinks(context)) == len(context.sinks):
        return
    with store.transaction(run.release_id) as db:
        deliveries = list_deliveries(context, run, dataset_noise(db, context.dataset))
    for each in deliveries:
        sink = SINKS[each.kind]
        assert isinstance(sink, ServerSink)
        try:
            sink.check_target(each)
        except BadInput as error:
            raise error.in_file(f"[[sinks]] {each.kind}") from None
