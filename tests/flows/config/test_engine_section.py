from __future__ import annotations

import pytest
from pydantic import ValidationError

from flows.config.engine_section import EngineSpec

CLUSTER = {
    "kind": "dask",
    "address": "tls://10.0.0.1:8786",
    "ca": "ca.pem",
    "certificate": "me.pem",
    "private_key": "me.key",
    "secret": "/keys/cluster.key",
}


def test_engine_spec_paths_start_at_release_file():
    built = EngineSpec.model_validate({**CLUSTER, "folder": "parts"}).build("/releases")
    assert (built.ca, built.secret) == ("/releases/ca.pem", "/keys/cluster.key")
    assert (built.folder, built.address) == ("/releases/parts", "tls://10.0.0.1:8786")


def test_engine_spec_nothing_given_is_local():
    assert EngineSpec().build("/x").kind == "local"
    assert EngineSpec(kind="dask").build("/x").address == ""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "spark"}, "'local' or 'dask'"),
        ({"workers": 0}, "greater than or equal to 1"),
        ({"address": "tls://a:1"}, "The 'address' key of [engine] needs a cluster."),
        ({"folder": "x"}, "The 'folder' key of [engine] needs a cluster."),
        ({**CLUSTER, "address": "tcp://a:1"}, "must be tls://HOST:PORT. Got 'tcp://a:1'."),
        ({**CLUSTER, "address": "tls://a:x"}, "must be tls://HOST:PORT."),
        ({**CLUSTER, "secret": ""}, "The engine 'dask' needs 'secret' in [engine]."),
        (
            {**CLUSTER, "folder": "s3://bucket/parts"},
            "The 'folder' key of [engine] is a URL; parts need a folder of the machines. "
            "Mount it on all of them, and name the path.",
        ),
        ({"kind": "dask", "folder": "file:///mnt"}, "The 'folder' key of [engine] is a URL"),
        ({"kind": "dask", "ca": "x"}, "The 'ca' key of [engine] needs an 'address'."),
    ],
)
def test_engine_spec_wrong_keys_one_sentence(given: dict, message: str):
    with pytest.raises(ValidationError) as error:
        EngineSpec.model_validate(given)
    assert message in str(error.value)
