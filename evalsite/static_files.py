"""How static files are collected: hashed, and compressed as far as it is worth a start's time."""

from typing import Any

import brotli
from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage

QUALITY = 5
"""Brotli's highest, 11, takes fifty times as long (15 s of a core) for pages a tenth smaller."""


class QuickCompressor(Compressor):  # type: ignore[misc]  # whitenoise has no types
    @staticmethod
    def compress_brotli(data: bytes) -> bytes:
        return bytes(brotli.compress(data, quality=QUALITY))


class Storage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    def create_compressor(self, **options: Any) -> Compressor:
        return QuickCompressor(**options)
