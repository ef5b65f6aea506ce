"""`tests/core` passes where only NumPy, SciPy and pytest are installed.

The environment is made here, without a network: a new virtual environment with links to these
packages and to what pytest needs, and a house that holds nothing but `estimation/core`,
`estimation/research`, `benchmarks` and `tests/core`. There every module of `tests/core` is
collected, so all that it imports at its top is there. The tests of `QUICK` then run, without
collections; the whole of `tests/core` is for `make test-core`. Imports inside functions, also of
tests that do not run here, are read from the source: an oracle comes through `pytest.importorskip`.
"""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
MODULES = sorted((REPO / "tests" / "core").rglob("*.py"))
INSTALLED = ("numpy", "scipy", "pytest")
NEEDED_BY_PYTEST = ("_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
OURS = ("estimation.core.", "estimation.research.", "benchmarks.", "tests.core.")
QUICK = ("designs", "measures", "methods", "names", "pool")

RunCore = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run_core(tmp_path_factory: pytest.TempPathFactory) -> RunCore:
    """Pytest of an environment without any other package, in a house without a web application."""
    folder = tmp_path_factory.mktemp("alone")
    python, house = make_environment(folder / "environment"), folder / "house"
    (house / "estimation").mkdir(parents=True)
    (house / "estimation" / "__init__.py").touch()
    for package in ("estimation/core", "estimation/research", "benchmarks"):
        (house / package).symlink_to(REPO / package, target_is_directory=True)
    core = house / "tests" / "core"
    shutil.copytree(REPO / "tests" / "core", core, ignore=shutil.ignore_patterns("__pycache__"))

    def run(*arguments: str, added: str = "") -> subprocess.CompletedProcess[str]:
        more = core / "test_core_added.py"
        if added:
            more.write_text(added)
        # Rewriting the assertions of all modules would take longer than their tests.
        quick = ["-q", "--assert=plain", "-m", "not slow"]
        try:
            return subprocess.run(
                [python, "-m", "pytest", *quick, *arguments],
                cwd=house,
                env={"PATH": os.environ["PATH"], "EVALSITE_TEST_DATA": str(house / "no-data")},
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            more.unlink(missing_ok=True)

    return run


def make_environment(folder: Path, names: Iterable[str] = (*INSTALLED, *NEEDED_BY_PYTEST)) -> Path:
    """A virtual environment in which links are the only packages; its interpreter."""
    venv.create(folder, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    for name in names:
        found = importlib.util.find_spec(name)
        assert found is not None
        assert found.origin is not None
        origin = Path(found.origin)
        package = origin.parent if origin.name == "__init__.py" else origin
        # NumPy and SciPy look for their shared libraries next to themselves.
        for part in (package, package.with_name(f"{name}.libs")):
            if part.exists():
                (packages / part.name).symlink_to(part)
    return folder / "bin" / "python"


def foreign_imports(source: str) -> list[str]:
    """What a source imports, anywhere, and the environment or the house does not have."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{each.name}" for each in node.names]
    allowed = sys.stdlib_module_names | {*INSTALLED}
    return [
        name
        for name in names
        if name.split(".")[0] not in allowed and not f"{name}.".startswith(OURS)
    ]


@pytest.mark.slow
def test_the_core_is_tested_without_any_other_package(run_core: RunCore) -> None:
    done = run_core("tests/core", "-k", " or ".join(f"test_core_{name}.py" for name in QUICK))
    assert done.returncode == 0, done.stdout + done.stderr
    counts = {name: int(number) for number, name in re.findall(r"(\d+) (\w+)", last_line(done))}
    assert counts["passed"] > 200
    assert counts["skipped"] < counts["passed"] / 4, done.stdout
    assert "could not import 'pytrec_eval'" in done.stdout


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.rstrip().rpartition("\n")[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("added", "missing"),
    [
        ("import django", "No module named 'django'"),
        ("import hypothesis", "No module named 'hypothesis'"),
        ("from estimation import models", "cannot import name 'models' from 'estimation'"),
        ("from tests.support import site", "No module named 'tests.support'"),
    ],
)
def test_a_module_that_imports_more_is_caught(run_core: RunCore, added: str, missing: str) -> None:
    done = run_core("tests/core/test_core_added.py", added=added)
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert missing in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_functions_import_nothing_else(path: Path) -> None:
    assert foreign_imports(path.read_text()) == []


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        ("def f():\n    import django", "def f():\n    import scipy.stats"),
        ("def f():\n    import ir_measures", "o = pytest.importorskip('ir_measures')"),
        ("from judging import models", "from estimation.core.sampling import goals"),
        ("import estimation.core_web", "import estimation.core"),
        ("from tests.support import site", "from tests.core.conftest import lists"),
    ],
)
def test_foreign_imports_are_found(bad: str, good: str) -> None:
    assert foreign_imports(bad)
    assert not foreign_imports(good)
