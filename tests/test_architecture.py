"""The rules of the house that import-linter and ruff do not see."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from estimation.core.sampling.methods import SAMPLING_METHODS

REPO = Path(__file__).resolve().parent.parent
PACKAGES = ("evalsite", "judging", "estimation", "demo")
MAX_FILE_LINES, MAX_INNER_LINES = 500, 400
INNER = ("estimation/core", "estimation/formats", "estimation/services", "estimation/api")
MAX_FLOOR = 9
MAX_VIEW_LINES = 25
MAX_TASK_LINES = 10
FRAMEWORKS = ("django", "rest_framework", "celery", "kombu", "redis")
FRAMEWORK_FREE = ("estimation.core", "estimation.formats", "judging.formats")

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def sources(*roots: str, suffixes: tuple[str, ...] = (".py",)) -> list[Path]:
    found = [path for root in roots for path in (REPO / root).rglob("*") if path.is_file()]
    kept = [p for p in found if p.suffix in suffixes and "migrations" not in p.parts]
    return sorted(p for p in kept if "vendor" not in p.parts and ".min." not in p.name)


def in_folders(*names: str) -> list[Path]:
    """Modules called ``name.py``, or in a package ``name``, of the applications."""
    return [p for p in sources(*PACKAGES) if p.stem in names or {*p.parts} & {*names}]


def functions(path: Path) -> Iterator[FunctionNode]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, FunctionNode):
            yield node


def name_of(path: Path, node: FunctionNode) -> str:
    return f"{path.relative_to(REPO)}:{node.lineno} {node.name}"


def length(node: FunctionNode) -> int:
    """Lines from ``def`` to the end, the docstring not counted."""
    first = node.body[0]
    docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    documented = (first.end_lineno or 0) - first.lineno + 1 if docstring else 0
    return (node.end_lineno or 0) - node.lineno + 1 - documented


def too_long(paths: list[Path], limit: int) -> list[str]:
    return [
        f"{name_of(path, node)} has {length(node)} lines"
        for path in paths
        for node in functions(path)
        if length(node) > limit
    ]


def direct_writes(source: str) -> list[int]:
    """Lines that call ``something.save(...)`` or ``something.objects.create(...)``."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            on_rows = owner.endswith("objects") or owner == "super()"
            creates = node.func.attr in CREATORS and on_rows
            if node.func.attr == "save" or creates:
                lines.append(node.lineno)
    return lines


CREATORS = {"create", "bulk_create", "get_or_create", "update_or_create"}


def actors_by_position(source: str) -> list[str]:
    """Public functions with an actor ``by`` that take more than their subject by position."""
    nodes = [node for node in ast.parse(source).body if isinstance(node, FunctionNode)]
    return [node.name for node in nodes if not node.name.startswith("_") and not _fits(node)]


def _fits(node: FunctionNode) -> bool:
    by_position = [argument.arg for argument in node.args.posonlyargs + node.args.args]
    has_actor = "by" in by_position or "by" in {a.arg for a in node.args.kwonlyargs}
    return not has_actor or ("by" not in by_position and len(by_position) <= 1)


def asked_by_name(source: str) -> list[int]:
    """Lines that compare a method with the name of one, or list several, past the table of them."""
    tree, found = ast.parse(source), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            told = any("method" in ast.unparse(side) for side in sides)
            if any(_is_choice(each) or (told and _names(each)) for each in sides):
                found.add(node.lineno)
        if isinstance(node, ast.Tuple | ast.List | ast.Set) and _names(node) > 1:
            found.add(node.lineno)
    return sorted(found)


def _is_choice(node: ast.AST) -> bool:
    """Whether it is one of the choices of rounds: ``Round.Method.QUERY``."""
    named = isinstance(node, ast.Attribute) and node.attr.isupper()
    return named and ast.unparse(node).rpartition(".")[0].endswith("Round.Method")


def _names(node: ast.AST) -> int:
    constants = [node, *getattr(node, "elts", [])]
    return len([x for x in constants if isinstance(x, ast.Constant) and x.value in OF_METHODS])


OF_METHODS = {*SAMPLING_METHODS}
WORKED_OUT = {  # where methods differ in what is done, not in what can be asked of them
    "estimation/core/library/designing.py": "design",
    "estimation/core/rounds/adaptive/state.py": "its own name",
    "estimation/core/sampling/designs.py": "type",
    "estimation/core/sampling/draws.py": "draw",
    "estimation/formats/collections/pairs.py": "thresholds of priority",
    "estimation/management/simulation_options.py": "default of simulate",
    "estimation/models.py": "constraints, held against the table by test_round_options",
    "estimation/plans.py": "what new rounds begin with",
    "estimation/services/designing.py": "design",
}


@pytest.mark.slow
def test_what_a_method_can_do_is_asked_of_the_table() -> None:
    found = {
        str(path.relative_to(REPO)): lines
        for path in sources("estimation", "judging", "evalsite")
        if "research" not in path.parts and (lines := asked_by_name(path.read_text()))
    }
    assert {path: lines for path, lines in found.items() if path not in WORKED_OUT} == {}
    assert set(found) == set(WORKED_OUT)
    named = re.compile(rf"method [!=]= \"({'|'.join(OF_METHODS)})\"")
    pages = sources("templates", suffixes=(".html", ".svg"))
    assert [path.name for path in pages if named.search(path.read_text())] == []


def longer(paths: Iterable[Path], limit: int) -> dict[str, int]:
    lengths = {str(path.relative_to(REPO)): len(path.read_text().splitlines()) for path in paths}
    return {path: lines for path, lines in lengths.items() if lines > limit}


@pytest.mark.slow
def test_no_file_is_too_long() -> None:
    roots = (*PACKAGES, "tests", "benchmarks", "templates", "static")
    assert longer(sources(*roots, suffixes=(".py", ".html", ".js", ".css")), MAX_FILE_LINES) == {}
    assert longer(sources(*INNER), MAX_INNER_LINES) == {}


def imports_of(path: Path, *, for_annotations: bool) -> set[Path]:
    """Modules of the core that a module of it imports: relative, as all of them are."""
    found = set()

    def visit(node: ast.AST) -> None:
        annotating = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if annotating and not for_annotations:
            return
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            found.update(folder / f"{name.name}.py" for name in node.names)
            found.add(folder.with_suffix(".py"))
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text()))
    return {each for each in found if each.is_file() and each != path}


def floors(uses: Mapping[Path, set[Path]]) -> dict[Path, int]:
    """How many modules stand below each, one upon the other. Raises ValueError for a circle."""
    known: dict[Path, int] = {}

    def floor(module: Path, above: tuple[Path, ...] = ()) -> int:
        if module in above:
            raise ValueError(f"a circle: {' -> '.join(each.stem for each in (*above, module))}")
        if module not in known:
            below = (floor(each, (*above, module)) + 1 for each in uses[module])
            known[module] = max(below, default=0)
        return known[module]

    for each in uses:
        floor(each)
    return known


@pytest.mark.slow
def test_the_core_is_not_higher_than_it_was_built_to_be() -> None:
    """What must be there before a module works; names in annotations alone need nothing."""
    modules = [path for path in sources("estimation/core") if path.name != "__init__.py"]
    found = floors({path: imports_of(path, for_annotations=False) for path in modules})
    assert {path.stem: floor for path, floor in found.items() if floor > MAX_FLOOR} == {}
    assert max(found.values()) > 5, "imports are found"


@pytest.mark.slow
def test_no_modules_of_the_core_speak_of_each_other_in_circles() -> None:
    modules = [path for path in sources("estimation/core") if path.name != "__init__.py"]
    floors({path: imports_of(path, for_annotations=True) for path in modules})
    one, other = Path("one"), Path("other")
    with pytest.raises(ValueError, match="one -> other -> one"):
        floors({one: {other}, other: {one}})
    assert floors({one: {other}, other: set()}) == {other: 0, one: 1}


def test_package_initializers_are_empty() -> None:
    """But for that of the core, which is a library: its names, each loaded when it is used."""
    face = REPO / "estimation" / "core" / "__init__.py"
    every = [path for path in sources(*PACKAGES) if path.name == "__init__.py"]
    initializers = [path for path in every if path != face]
    assert len(initializers) > 5
    assert [path for path in initializers if path.read_text().strip()] == []


@pytest.mark.slow
def test_views_are_short() -> None:
    views = in_folders("views", "api")
    assert len(views) > 3
    assert too_long(views, MAX_VIEW_LINES) == []


def test_tasks_are_short() -> None:
    tasks = in_folders("tasks")
    assert tasks
    assert too_long(tasks, MAX_TASK_LINES) == []


@pytest.mark.slow
def test_views_and_tasks_leave_writing_to_services() -> None:
    writes = [
        f"{path.relative_to(REPO)}:{line}"
        for path in in_folders("views", "api", "tasks")
        for line in direct_writes(path.read_text())
    ]
    assert writes == []


@pytest.mark.slow
def test_the_actor_is_passed_by_keyword() -> None:
    services = in_folders("services")
    assert len(services) > 5
    positional = [
        f"{path.relative_to(REPO)} {name}"
        for path in services
        for name in actors_by_position(path.read_text())
    ]
    assert positional == []


@pytest.mark.parametrize(
    ("finder", "bad", "good"),
    [
        (direct_writes, "campaign.save()", "services.save_draft(campaign)"),
        (direct_writes, "Job.objects.create(kind=1)", "campaigns.create(by=user)"),
        (asked_by_name, 'row.method == "adaptive"', 'row.sampling.draws == "batches"'),
        (asked_by_name, 'told["method"] in ("iid",)', 'draws_again(told["method"])'),
        (asked_by_name, "row.method != Round.Method.QUERY", 'measure.family == "query"'),
        (asked_by_name, 'METHODS = ("poisson", "iid")', 'default = "poisson"'),
        (actors_by_position, "def close(round, by): ...", "def close(round, *, by): ..."),
        (actors_by_position, "def add(a, b, *, by): ...", "def add(*, a, b, by): ..."),
    ],
)
def test_the_finders_find(finder: Callable[[str], list[object]], bad: str, good: str) -> None:
    assert finder(bad)
    assert not finder(good)


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=REPO, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("package", FRAMEWORK_FREE)
def test_framework_free_packages_import_without_any_framework(package: str) -> None:
    out = run_python(
        f"""
import importlib, pkgutil, sys
for name in {FRAMEWORKS!r}:
    sys.modules[name] = None  # importing it is an ImportError now
package = importlib.import_module({package!r})
modules = [m.name for m in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
for name in modules:
    importlib.import_module(name)
print(len(modules))
"""
    )
    assert int(out) > 0


@pytest.mark.slow
def test_web_processes_do_not_load_scipy() -> None:
    """Nor what passkeys, sign-on and letters need, before somebody needs it: 30 MB."""
    out = run_python(
        """
import sys
import evalsite.wsgi
from django.urls import get_resolver
patterns = get_resolver().url_patterns
heavy = ("scipy", "sklearn", "fido2", "authlib", "cryptography", "smtplib")
print(len(patterns), sorted(name for name in heavy if name in sys.modules))
"""
    )
    count, _, loaded = out.strip().partition(" ")
    assert int(count) > 5
    assert loaded == "[]"


@pytest.mark.slow
def test_workers_load_what_jobs_need_with_the_first_of_them() -> None:
    """SciPy alone takes a second to load and 40 MB, in each process of a worker."""
    out = run_python(
        """
import sys
from celery.fixups.django import DjangoWorkerFixup
from evalsite.celery import app, load_what_jobs_need
app.loader.import_default_modules()
DjangoWorkerFixup(app).validate_models()  # as every worker does that starts
assert "judging.tasks.run_job" in app.tasks
print([name for name in ("evalsite.urls", "rest_framework.views") if name in sys.modules])
known = ("scipy", "estimation.core.rounds.evaluation")
print([name for name in known if name in sys.modules])
load_what_jobs_need(task_id="1")
print([name for name in known if name in sys.modules])
"""
    )
    assert out.splitlines() == ["[]", "[]", "['scipy', 'estimation.core.rounds.evaluation']"]


def test_the_supervisor_of_a_site_loads_nothing_of_it() -> None:
    """Django and the models are 60 MB, in a process that does nothing but wait."""
    out = run_python(
        """
import sys
import evalsite.management.serving
names = {name.partition(".")[0] for name in sys.modules}
print(sorted(names & {"django", "judging", "estimation", "numpy", "celery", "http", "ssl"}))
"""
    )
    assert out.strip() == "[]"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database", "loaded"),
    [("", "[] False"), ("postgres://site@host/name", "['psycopg', 'psycopg_binary'] True")],
)
def test_psycopg_is_loaded_with_postgresql_alone(database: str, loaded: str) -> None:
    """It takes 10 MB in every process of web server or worker, as does a client of tests. REST
    framework works with them and without them."""
    out = run_python(
        f"""
import os, sys
os.environ |= {{"DATABASE_URL": {database!r}}} if {database!r} else {{}}
import evalsite.wsgi, evalsite.celery
import django
django.setup()
from django.urls import get_resolver
import judging.handlers, estimation.handlers, rest_framework.serializers
assert len(get_resolver().url_patterns) > 5
from rest_framework.compat import postgres_fields
names = sorted({{name.partition(".")[0] for name in sys.modules if name.startswith("psycopg")}})
print(names, postgres_fields is not None)
assert "requests" not in sys.modules
import requests
import django.contrib.postgres.fields  # whoever wants it gets it
"""
    )
    assert out.strip() == loaded


def class_names() -> Iterator[tuple[str, Path]]:
    """Public classes. Operations of the REST interface have the names of their views, which are
    those of what they are about; what extends a class of a library may have its name."""
    for path in sources("estimation", "judging", "evalsite"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
                operation = path.stem == "api" or "api" in path.parts
                view = operation and any(base.endswith("View") for base in bases)
                if not view and not any(node.name in base for base in bases):
                    yield node.name, path.relative_to(REPO)


def stem_of(name: str) -> str:
    """The words of a name in alphabetical order, each without the ending of its plural."""
    words = sorted(word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name))
    return " ".join(word if word.endswith("ss") else word.removesuffix("s") for word in words)


def alike(names: Iterable[tuple[str, Path]]) -> dict[str, list[str]]:
    """Names in different modules that are the same but for case, plurals, or the order of words."""
    found: dict[str, list[tuple[str, Path]]] = {}
    for name, path in names:
        found.setdefault(stem_of(name), []).append((name, path))
    return {
        stem: [f"{name} in {path}" for name, path in places]
        for stem, places in found.items()
        if len({path for _, path in places}) > 1
    }


GIVEN = {"command"}  # what Django asks of every command of manage.py


@pytest.mark.slow
def test_no_two_classes_have_nearly_the_same_name() -> None:
    assert {
        stem: places for stem, places in alike(class_names()).items() if stem not in GIVEN
    } == {}


def test_names_that_are_nearly_the_same_are_found() -> None:
    one, other = Path("one.py"), Path("other.py")
    assert alike([("Bound", one), ("Bounds", other)]) == {
        "bound": ["Bound in one.py", "Bounds in other.py"]
    }
    assert list(alike([("SaidGrade", one), ("GradesSaid", other)])) == ["grade said"]
    assert alike([("Problem", one), ("Problems", one), ("Class", other), ("Clas", other)]) == {}


def test_titles_beside_the_ids_of_topics_are_apart_from_them() -> None:
    """Else a title in Arabic or Hebrew is read in the direction of the id."""
    beside = re.compile(r"topic_id \}\}(?:</span>)? \{\{ [\w.]*title")
    found = [
        p.name for p in sources("templates", suffixes=(".html",)) if beside.search(p.read_text())
    ]
    assert found == []
