"""How static files are compressed when they are collected."""

import gzip
import time
from collections.abc import Callable
from pathlib import Path

import brotli
import pytest
from whitenoise.compress import Compressor

from evalsite import settings, static_files
from evalsite.static_files import QuickCompressor

STYLES = Path(__file__).parent.parent / "static" / "css"


@pytest.fixture
def styles() -> bytes:
    return b"".join(file.read_bytes() for file in sorted(STYLES.glob("*.css")))


def processor_seconds(work: Callable[[bytes], object], data: bytes) -> float:
    start = time.process_time()
    work(data)
    return time.process_time() - start


def test_they_are_smaller_than_by_gzip_and_take_a_start_no_seconds(styles: bytes) -> None:
    """A site's first start compresses half a thousand files, most of them of others."""
    compressed = QuickCompressor.compress_brotli(styles)
    assert brotli.decompress(compressed) == styles
    assert len(compressed) < len(gzip.compress(styles))
    quick = processor_seconds(QuickCompressor.compress_brotli, styles)
    assert quick < processor_seconds(Compressor.compress_brotli, styles) / 4


def test_sites_collect_them_so() -> None:
    assert settings.STORAGES["staticfiles"]["BACKEND"] == "evalsite.static_files.Storage"
    made = static_files.Storage(location="/nowhere", base_url="/static/").create_compressor()
    assert isinstance(made, QuickCompressor)
