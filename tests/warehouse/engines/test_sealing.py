from __future__ import annotations

from pathlib import Path

import pytest

from ppdm_core.model.errors import BadInput
from tests.support.clusters import write_keys
from warehouse.engines._sealing import read_cluster_key, seal, unseal


def test_read_cluster_key_readable_by_others_or_missing_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = Path(write_keys(tmp_path / "k").secret)
    key = read_cluster_key(str(path))
    assert unseal(key, seal(key, b"data")) == b"data"
    assert b"data" not in seal(key, b"data")
    with pytest.raises(BadInput, match="different cluster keys"):
        unseal(bytes(32), seal(key, b"data"))
    path.chmod(0o640)
    with pytest.raises(BadInput, match="Others than its owner"):
        read_cluster_key(str(path))
    monkeypatch.delenv("PPDM_CLUSTER_KEY", raising=False)
    monkeypatch.delenv("PPDM_CLUSTER_KEY_FILE", raising=False)
    with pytest.raises(BadInput, match="no cluster key"):
        read_cluster_key()
    monkeypatch.setenv("PPDM_CLUSTER_KEY", key.hex())
    assert read_cluster_key() == key
