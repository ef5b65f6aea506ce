"""Environments of their own for what evalsite is measured against, each made once."""

import subprocess
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
NOT_NEEDED = "--no-deps"


def pinned(name: str = "peers") -> dict[str, str]:
    """What ``name.txt`` asks for, and the version of each."""
    lines = (HERE / f"{name}.txt").read_text().splitlines()
    parts = [line.partition("==") for line in lines if not line.startswith("#")]
    return {package: version for package, _, version in parts}


def names(name: str = "peers") -> list[str]:
    return list(pinned(name))


def peers_python(folder: Path, name: str = "peers") -> Path:
    """The Python of an environment with all of ``name.txt``, and of ``name-alone.txt`` without what
    these ask for; anew where the lists have changed."""
    python, stamp = folder / "bin" / "python", folder / "peers.txt"
    lists = [HERE / f"{name}.txt", HERE / f"{name}-alone.txt"]
    wanted = "".join(each.read_text() for each in lists if each.exists())
    if not stamp.exists() or stamp.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        for each in lists:
            options = [NOT_NEEDED] if each.stem.endswith("-alone") else []
            if each.exists():
                install = [python, "-m", "pip", "install", "--quiet", *options, "-r", each]
                subprocess.run(install, check=True)
        stamp.write_text(wanted)
    return python
