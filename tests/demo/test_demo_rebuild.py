"""Building the demo again gives the shipped bytes, where the same bytes are promised."""

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from demo.build import build_environment, content

ROOT = Path(__file__).parents[2]
COLLECTION = ROOT / "demo" / "collection"


def files(folder: Path) -> list[str]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path.relative_to(folder).as_posix() for path in paths)


@pytest.mark.slow
def test_rebuilding_gives_the_same_bytes(tmp_path: Path) -> None:
    made = json.loads((COLLECTION / "manifest.json").read_text(encoding="utf-8"))["built_with"]
    here = build_environment()
    needed = [key for key in made if key != "zlib"]
    if any(made[key] != here[key] for key in needed):
        pytest.skip(f"the collection was built with {made}, this is {here}")
    command = [sys.executable, "-m", "demo.build", "--output", str(tmp_path)]
    # Neither another hash seed nor the number of threads may matter; one thread also keeps the
    # build quick on a busy machine.
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=110)
    assert files(tmp_path) == files(COLLECTION)
    same_zlib = made["zlib"] == here["zlib"]
    read = Path.read_bytes if same_zlib else content
    for name in files(COLLECTION):
        if same_zlib or name != "manifest.json":
            assert digest(read(tmp_path / name)) == digest(read(COLLECTION / name)), name


def digest(found: bytes) -> str:
    """To compare long texts without a line by line account of how they differ."""
    return hashlib.sha256(found).hexdigest()


def test_nothing_tells_where_the_collection_was_built() -> None:
    for name in files(COLLECTION):
        text = content(COLLECTION / name).decode()
        assert not re.search(r"/\.?venv|site-packages|/root/|/home/|\.pyenv", text), name


def test_archives_carry_no_time_and_no_name() -> None:
    archives = list(COLLECTION.rglob("*.gz"))
    assert archives
    for path in archives:
        header = path.read_bytes()[:10]
        assert header[:2] == b"\x1f\x8b"
        assert header[3] == 0, "flags: no file name"
        assert header[4:8] == bytes(4), "no time"
    named = gzip.compress(b"x", mtime=1)
    assert named[4:8] != bytes(4)


def test_manifest_has_the_digest_of_every_file() -> None:
    stated = json.loads((COLLECTION / "manifest.json").read_text(encoding="utf-8"))["sha256"]
    assert sorted(stated) == [name for name in files(COLLECTION) if name != "manifest.json"]
    for name, digest in stated.items():
        assert hashlib.sha256(content(COLLECTION / name)).hexdigest() == digest, name
