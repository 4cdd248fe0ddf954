"""The same release with which two files are put together: boxes around rows hold one person."""

from __future__ import annotations

from tests.contract.scene_linkability import weak

__all__ = ["weak"]
