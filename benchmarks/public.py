"""The folder of public test collections, which some benchmarks play on."""

import os
from pathlib import Path

FOLDER = Path(
    os.environ.get("EVALSITE_TEST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)


def collection_in(folder: Path, name: str) -> Path:
    """Where a collection stands. Where there is none, the process ends and says what it expects."""
    found = folder / name
    if not found.is_dir():
        raise SystemExit(
            f"There is no folder {found}. EVALSITE_TEST_DATA names the folder of the public test "
            "collections."
        )
    return found
