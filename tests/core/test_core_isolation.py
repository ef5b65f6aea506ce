"""The core runs where Django, Celery and Redis do not exist; measures also without SciPy."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "estimation" / "core"
MODULES = sorted(
    ".".join(path.relative_to(CORE).with_suffix("").parts)
    for path in CORE.rglob("*.py")
    if path.name != "__init__.py"
)
SCRIPT = """
import importlib, sys
for name in {blocked!r}:
    sys.modules[name] = None
sys.path.insert(0, {root!r})
for name in {modules!r}:
    importlib.import_module(name)
"""
FRAMEWORKS = ["django", "celery", "kombu", "redis", "rest_framework", "judging", "evalsite"]


def import_without(blocked: list[str], modules: list[str]) -> subprocess.CompletedProcess[str]:
    script = SCRIPT.format(
        blocked=blocked, root=str(ROOT), modules=[f"estimation.core.{name}" for name in modules]
    )
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )


def test_every_module_imports_without_any_framework() -> None:
    assert len(MODULES) > 40
    assert "rounds.active.estimates" in MODULES
    found = import_without(FRAMEWORKS, MODULES)
    assert found.returncode == 0, found.stderr


def test_measures_import_without_scipy() -> None:
    assert import_without([*FRAMEWORKS, "scipy"], ["measures.table"]).returncode == 0


def test_the_check_notices_a_blocked_import() -> None:
    assert import_without(["scipy"], ["data.pool"]).returncode != 0


def test_the_package_around_the_core_is_empty() -> None:
    """The core's own has its public names; `test_core_names` holds that they load nothing."""
    assert (ROOT / "estimation" / "__init__.py").read_text() == ""
