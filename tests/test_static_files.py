"""How static files are compressed when they are collected."""

import gzip
from pathlib import Path
from typing import Any

import brotli
import pytest
from whitenoise.compress import Compressor

from evalsite import settings, static_files
from evalsite.static_files import QuickCompressor

QUICK = 6  # of brotli's qualities: 9 takes ten times as long, and 11, the highest, fifty times
STYLES = Path(__file__).parent.parent / "static" / "css"


@pytest.fixture
def styles() -> bytes:
    return b"".join(file.read_bytes() for file in sorted(STYLES.glob("*.css")))


@pytest.fixture
def qualities(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The qualities that files are compressed with."""
    asked: list[int] = []
    compress = brotli.compress

    def counting(data: bytes, *, quality: int = 11, **options: Any) -> bytes:
        asked.append(quality)
        return bytes(compress(data, quality=quality, **options))

    monkeypatch.setattr(brotli, "compress", counting)
    return asked


def test_they_are_smaller_than_by_gzip_and_take_a_start_no_seconds(
    styles: bytes, qualities: list[int]
) -> None:
    """A site's first start compresses half a thousand files, most of them of others."""
    compressed = QuickCompressor.compress_brotli(styles)
    assert brotli.decompress(compressed) == styles
    assert len(compressed) < len(gzip.compress(styles))
    assert max(qualities) <= QUICK


def test_what_is_compressed_as_far_as_can_be_is_found_out(
    styles: bytes, qualities: list[int]
) -> None:
    Compressor.compress_brotli(styles[:1000])
    assert max(qualities) > QUICK


def test_sites_collect_them_so() -> None:
    assert settings.STORAGES["staticfiles"]["BACKEND"] == "evalsite.static_files.Storage"
    made = static_files.Storage(location="/nowhere", base_url="/static/").create_compressor()
    assert isinstance(made, QuickCompressor)
