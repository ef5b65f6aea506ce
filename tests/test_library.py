"""The core as a library: its examples, its wheel in a bare environment, and its notebooks."""

import doctest
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

import estimation.core
from tests.test_core_alone import make_environment

REPO = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((REPO / "docs" / "notebooks").glob("*.ipynb"))
MOST_LINES = 8  # of the part that ends with a sample, and of the part that ends with a ranking
PUBLIC = {name: getattr(estimation.core, name) for name in estimation.core.__all__}
FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


# ------------------------------------------------------------------------------------- examples


def examples(name: str) -> list[doctest.DocTest]:
    """The examples of a public name, of a class also those of its methods."""
    finder = doctest.DocTestFinder(recurse=isinstance(PUBLIC[name], type))
    found = finder.find(PUBLIC[name], name, globs={**PUBLIC, "np": np})
    return [each for each in found if each.examples]


@pytest.fixture
def in_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to write to, in which `demo` is that of the checkout."""
    (tmp_path / "demo").symlink_to(REPO / "demo", target_is_directory=True)
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("in_checkout")
@pytest.mark.parametrize(
    "name", [name for name in PUBLIC if isinstance(PUBLIC[name], type | FunctionType)]
)
def test_examples_hold(name: str) -> None:
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for each in examples(name):
        runner.run(each, out=told.append)
    assert runner.failures == 0, "".join(told)


@pytest.mark.parametrize("name", [n for n in PUBLIC if isinstance(PUBLIC[n], FunctionType)])
def test_every_public_function_has_an_example(name: str) -> None:
    assert examples(name)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_explained(name: str) -> None:
    if isinstance(PUBLIC[name], type | FunctionType):
        assert inspect.getdoc(PUBLIC[name])


# ---------------------------------------------------------------------------------------- wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without a network from what a checkout has of it."""
    house = tmp_path_factory.mktemp("house")
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(REPO / name, house)
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPO / "estimation" / "core", house / "estimation" / "core", ignore=unwanted)
    options = ("--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--no-cache-dir")
    command = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", "built", "."]
    done = subprocess.run(command, cwd=house, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = (house / "built").glob("*.whl")
    return found


RunBare = Callable[[str, Path], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run_bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> RunBare:
    """Python of an environment with NumPy, SciPy and the wheel, away from the checkout."""
    environment = tmp_path_factory.mktemp("environment")
    python = make_environment(environment, ("numpy", "scipy"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(next(environment.glob("lib/python*/site-packages")))

    def run(source: str, folder: Path) -> subprocess.CompletedProcess[str]:
        command = [python, "-c", source]
        clean = {"PATH": os.environ["PATH"]}
        return subprocess.run(
            command, cwd=folder, env=clean, capture_output=True, text=True, check=False
        )

    return run


@pytest.mark.slow
def test_the_wheel_holds_the_core_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(n for n in names if n.endswith("METADATA"))).decode()
    core = REPO / "estimation" / "core"
    sources = [*core.rglob("*.py"), core / "py.typed"]
    held = {name for name in names if ".dist-info/" not in name}
    assert held == {f"evalsite_core/{path.relative_to(core).as_posix()}" for path in sources}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    needed = {line.split()[1].split("<")[0] for line in metadata.splitlines() if "Dist:" in line}
    assert needed == {"numpy", "scipy"}
    assert f"Version: {estimation.core.__version__}\n" in metadata
    assert "License-Expression: Apache-2.0\n" in metadata


@pytest.mark.slow
def test_what_is_pinned_here_satisfies_the_wheel(wheel: Path) -> None:
    from packaging.requirements import Requirement

    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith("METADATA"))
        lines = archive.read(name).decode().splitlines()
    pins = dict(
        line.split("#")[0].strip().split("==")
        for line in (REPO / "requirements.txt").read_text().splitlines()
        if "==" in line
    )
    for line in lines:
        if line.startswith("Requires-Dist: "):
            needed = Requirement(line.partition(": ")[2])
            assert needed.specifier.contains(pins[needed.name]), line


@pytest.mark.slow
def test_the_wheel_is_used_where_nothing_else_is(run_bare: RunBare, tmp_path: Path) -> None:
    done = run_bare(
        """
import sys
import evalsite_core as ev
assert not {"numpy", "scipy"} & set(sys.modules), "importing it loads nothing"
for name in ev.__all__:
    getattr(ev, name)
assert "estimation" not in sys.modules
print(len(ev.__all__), ev.__version__)
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(len(PUBLIC)), estimation.core.__version__]


@pytest.mark.slow
def test_type_checkers_see_what_is_there_and_nothing_else(wheel: Path, tmp_path: Path) -> None:
    """mypy over a program that uses the wheel: it knows the types, and refuses a wrong name.

    Those of NumPy and SciPy have no part in that, and would take most of the time.
    """
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    program = tmp_path / "program.py"
    program.write_text(
        "import evalsite_core as ev\n"
        "measure: int = ev.parse_measure('P@10')\n"
        "ev.evaluat\n"
        "version: str = ev.__version__\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file=", "--no-incremental"]
    command += ["--no-site-packages", "--ignore-missing-imports", program.name]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    found = [line for line in done.stdout.splitlines() if line.startswith("program.py")]
    assert [line.split(":")[1] for line in found] == ["2", "3"], done.stdout
    assert 'expression has type "Measure"' in found[0]
    assert 'has no attribute "evaluat"' in found[1]


# --------------------------------------------------------------------------- docs/library.md


@pytest.mark.slow
def test_the_code_of_the_guide_runs_with_the_wheel(run_bare: RunBare, tmp_path: Path) -> None:
    (tmp_path / "demo").symlink_to(REPO / "demo", target_is_directory=True)
    guide = (REPO / "docs" / "library.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", guide, re.M | re.S)
    assert len(blocks) > 10
    done = run_bare("\n".join(blocks), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "to judge, in 10 batches" in done.stdout


# ------------------------------------------------------------------------------------ notebooks


def cells(notebook: Path) -> Iterator[tuple[str, str]]:
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        yield cell["cell_type"], "".join(cell["source"])


def parts(notebook: Path) -> list[str]:
    """The code under each heading of the second level."""
    found: list[str] = []
    for kind, text in cells(notebook):
        if kind == "markdown" and text.startswith("## "):
            found.append("")
        elif kind == "code":
            found[-1] += text + "\n"
    return found


def lines_of(code: str) -> int:
    return len([line for line in code.splitlines() if line.strip()])


def shown(notebook: Path) -> str:
    """The code of a notebook; what is the last line of a cell is printed in both forms."""
    return "\n".join(
        f"""
import ast as _ast
_tree = _ast.parse({text!r})
_last = _tree.body.pop() if isinstance(_tree.body[-1], _ast.Expr) else None
exec(compile(_tree, {notebook.name!r}, "exec"))
if _last is not None:
    _value = eval(compile(_ast.Expression(_last.value), {notebook.name!r}, "eval"))
    print(_value)
    print(getattr(_value, "_repr_html_", str)())
"""
        for kind, text in cells(notebook)
        if kind == "code"
    )


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_short_and_stored_without_output(notebook: Path) -> None:
    of_parts = list(map(lines_of, parts(notebook)))
    assert len(of_parts) == 2
    assert max(of_parts) <= MOST_LINES, of_parts
    stored = json.loads(notebook.read_text("utf-8"))["cells"]
    assert all(not cell.get("outputs") for cell in stored)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_with_the_wheel(notebook: Path, run_bare: RunBare, tmp_path: Path) -> None:
    (tmp_path / "demo").symlink_to(REPO / "demo", target_is_directory=True)
    folder = tmp_path / "docs" / "notebooks"
    folder.mkdir(parents=True)
    done = run_bare(shown(notebook), folder)
    assert done.returncode == 0, done.stderr
    assert "95 % intervals" in done.stdout
    assert "<table>" in done.stdout


@pytest.mark.slow
def test_a_notebook_that_does_not_run_is_caught(run_bare: RunBare, tmp_path: Path) -> None:
    broken = tmp_path / "broken.ipynb"
    source = "import evalsite_core as ev\nev.read_run('x')"
    broken.write_text(json.dumps({"cells": [{"cell_type": "code", "source": [source]}]}))
    done = run_bare(shown(broken), tmp_path)
    assert "did you mean 'read_runs'" in done.stderr


def test_there_are_two_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["sample_and_rank", "somebody_elses_sample"]
