"""Documentation that does not lag: what there is is told, and what is told is there."""

import json
import re
from pathlib import Path

import pytest
import yaml
from django.urls import Resolver404, resolve

from estimation import core
from estimation.core.measures.kinds import KINDS
from estimation.core.measures.table import parse_measure
from estimation.core.sampling.interval_kinds import INTERVAL_KINDS
from estimation.models import Round
from estimation.options import REQUIRED
from estimation.plans import OPTIONS
from estimation.services.report_files.table import REPORTS
from tests.support.site import REPO

APPS = ("evalsite", "judging", "estimation", "demo")
SETTING = re.compile(r'env\.\w+\(\s*"([A-Z_]+)"')


def told() -> set[str]:
    """The settings that the deployment guide has in its table."""
    guide = (REPO / "docs/deployment.md").read_text("utf-8")
    rows = re.findall(r"^\| (`[A-Z_`, ]+`) \|", guide, re.M)
    return {name for row in rows for name in re.findall("[A-Z_]+", row)}


def test_every_setting_is_in_the_table_of_the_deployment_guide() -> None:
    read = set(SETTING.findall((REPO / "evalsite" / "settings.py").read_text("utf-8")))
    assert {"SITE_URL", "EVALSITE_DATA", "DATABASE_URL"} <= read
    assert told() == read


def test_variables_that_are_read_elsewhere_are_told() -> None:
    read = re.compile(r'environ(?:\.get\(|\[)"([A-Z_]+)"\]?(?! *[=|])')
    sources = [p for app in APPS for p in (REPO / app).rglob("*.py") if p.name != "settings.py"]
    found = set(read.findall(text_of(*sources)))
    assert "SECRET_KEY" in found
    assert {name for name in found if name not in text_of(*GUIDES)} == set()


ASKED_FOR = {"SITE_URL", "SECRET_KEY"}  # compose does not start without
DECIDED = {"DATABASE_URL", "CELERY_BROKER_URL", "BEHIND_PROXY"}  # by the services themselves
NOT_HERE = {"EVALSITE_DATA", "DEBUG"}  # the image has the first, production must not have the other


def test_every_setting_reaches_the_containers() -> None:
    services = yaml.safe_load((REPO / "compose.yaml").read_text("utf-8"))["services"]
    ours = {name: service for name, service in services.items() if "build" in service}
    assert set(ours) == {"prepare", "web", "worker", "reader"}
    for name, service in ours.items():
        given = service["environment"]
        assert set(given) == told() - NOT_HERE, name
        passed = {key for key, value in given.items() if value is None}
        assert passed == told() - NOT_HERE - ASKED_FOR - DECIDED, name
        assert all(f"${{{key}:?" in given[key] for key in ASKED_FOR), name


# ----------------------------------------------------------------- measures, methods and the like

GUIDES = sorted([*REPO.glob("*.md"), *(REPO / "docs").rglob("*.md")])
METHODS = REPO / "docs" / "methods"


def text_of(*paths: Path) -> str:
    return "\n".join(path.read_text("utf-8") for path in paths)


def test_every_measure_is_in_the_table_of_measures() -> None:
    rows = re.findall(r"^\| (`.*?`) \|", text_of(METHODS / "measures.md"), re.M)
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert {parse_measure(name).name for name in named} == set(KINDS)


def test_every_page_has_one_title() -> None:
    pages = {str(path): text_of(path) for path in (REPO / "docs").rglob("*.md")}
    written = {
        name: re.sub(r"^```.*?^```", "", page, flags=re.M | re.S) for name, page in pages.items()
    }
    titles = {name: len(re.findall(r"^# ", page, re.M)) for name, page in written.items()}
    assert {name: count for name, count in titles.items() if count != 1} == {}


def test_every_method_has_a_section_and_no_other() -> None:
    """Sections about methods have the names of these for headings, and nothing else."""
    headings = re.findall(r"^## ([a-z-]+(?:, [a-z-]+)*)$", text_of(METHODS / "sampling.md"), re.M)
    assert sorted(", ".join(headings).split(", ")) == sorted(Round.Method.values)


def test_every_kind_of_interval_is_in_the_table_of_them_and_no_other() -> None:
    table = (
        text_of(METHODS / "intervals.md").partition("| kind | relies on |")[2].partition("\n\n")[0]
    )
    told = re.findall(r"^\| `([a-z-]+)`", table, re.M)
    assert told == list(INTERVAL_KINDS)


def test_every_report_is_in_the_table_of_the_guide_and_no_other() -> None:
    told = re.findall(r"^\| `([a-z-]+\.[a-z]+)` \| ", text_of(REPO / "docs" / "guide.md"), re.M)
    assert told == list(REPORTS)


@pytest.mark.parametrize("option", [*Round.Prior.values, *Round.Rule.values, *Round.Goal.values])
def test_every_choice_of_a_design_is_told(option: str) -> None:
    rows = rf"^(?:\| {option} \||      {option} )"
    assert re.search(rows, text_of(METHODS / "sampling.md"), re.M)


def test_every_public_name_of_the_library_is_told_and_no_other() -> None:
    reference = text_of(REPO / "docs" / "library.md").partition("\n## Reference\n")[2]
    told = re.findall(r"^\| `(\w+)` \|", reference, re.M)
    assert sorted(told) == core.__all__
    used = set(re.findall(r"\bev\.(\w+)", text_of(REPO / "docs" / "library.md")))
    assert used <= {*core.__all__}


def test_every_option_of_a_round_is_in_the_table_for_programs() -> None:
    rows = re.findall(
        r"^\| \*(.+)\* \| `([a-z_]+)` \| (.+) \|$", text_of(REPO / "docs/guide.md"), re.M
    )
    assert {(label, name) for label, name, _ in rows} == {
        (option.label.lower(), name) for name, option in OPTIONS.items()
    }
    for _, name, default in rows:
        if default.startswith("`"):
            assert default.strip("`") == json.dumps(OPTIONS[name].default).strip('"').removesuffix(
                ".0"
            )
        else:
            assert OPTIONS[name].default in (REQUIRED, None, "", [])


# ------------------------------------------------------------------------- commands and addresses

DJANGOS = {"check", "migrate", "collectstatic", "createsuperuser", "changepassword"}


def our_commands() -> set[str]:
    folders = [REPO / app / "management" / "commands" for app in ("estimation", "evalsite")]
    return {path.stem for each in folders for path in each.glob("*.py")} - {"__init__"}


def test_every_command_is_told_and_no_other() -> None:
    told = set(re.findall(r"manage\.py ([a-z_]+)", text_of(*GUIDES)))
    assert told - DJANGOS == our_commands() - DJANGOS


def test_every_target_of_make_is_told_and_no_other() -> None:
    makefile = text_of(REPO / "Makefile")
    (line,) = re.findall(r"^\.PHONY: (.+)$", makefile, re.M)
    targets = set(line.split())
    assert set(re.findall(r"^([a-z-]+):", makefile, re.M)) == targets
    head = makefile.partition("\n\n")[0]
    told = set(re.findall(r"(?:`|^#? ?|&& )make ([a-z-]+)", text_of(*GUIDES) + head, re.M))
    assert told <= targets
    parts = {"lint", "types", "contracts", "deployable", "install", "install-dev", "services"}
    assert targets - parts <= told


SHOWN_ADDRESS = re.compile(r"(?:example|:8000|`)(/[a-z][a-z/<>_.-]*/)[`\s?]")
SHOWN_OPERATION = re.compile(r"`(GET|POST|PUT|PATCH|DELETE) ([\w{}/-]+/)(?:\?[^`]*)?`")
OF_A_CAMPAIGN = "/api/campaigns/1/"  # what stands before addresses that are told without it


def is_there(address: str, method: str = "") -> bool:
    """Whether an address leads to a view, and this has the method. All that begins with api/ leads
    to the view that answers 404, if to nothing else."""
    path = re.sub(r"<[a-z_]+>|\{[a-z_]+\}", "1", address)
    try:
        found = resolve(path if path.startswith("/") else OF_A_CAMPAIGN + path)
    except Resolver404:
        return False
    known = found.view_name != "api-unknown" or path == "/api/"
    return known and (not method or hasattr(found.func.cls, method.lower()))


def test_every_address_that_is_told_exists() -> None:
    told = set(SHOWN_ADDRESS.findall(text_of(*GUIDES)))
    operations = set(SHOWN_OPERATION.findall(text_of(*GUIDES)))
    assert "/api/schema/" in told
    assert ("POST", "rounds/{number}/pause/") in operations
    assert [address for address in sorted(told) if not is_there(address)] == []
    assert [each for each in sorted(operations) if not is_there(each[1], each[0])] == []


def test_addresses_that_are_not_there_are_found() -> None:
    assert is_there("rounds/{number}/pause/", "POST")
    assert not is_there("rounds/{number}/pause/", "PUT")
    for gone in ("/nowhere/", "/api/nowhere/", "rounds/{number}/nowhere/"):
        assert not is_there(gone), gone


# --------------------------------------------------------------------------- what pages point to


SHAPE = re.compile(
    r"^ ?(\d+) +(\w+) .*?((?:judging|core|estimation)/[\w/]+\.py)(?:, in an? (\w+))?", re.M
)


def test_the_shapes_of_a_judgment_stand_where_it_is_said_and_are_ten_at_most() -> None:
    way = (
        text_of(REPO / "CONTRIBUTING.md").partition("The way of a judgment")[2].partition("## ")[0]
    )
    numbers = [int(number) for number in re.findall(r"^ ?(\d+) ", way, re.M)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) <= 10
    shapes = SHAPE.findall(way)
    assert len(shapes) == len(numbers) - 1, "the last is the page"
    for _, name, path, _ in shapes:
        file = REPO / (f"estimation/{path}" if path.startswith("core/") else path)
        assert f"class {name}" in file.read_text("utf-8"), f"{name} in {path}"


def test_every_link_within_the_documentation_leads_somewhere() -> None:
    broken = []
    for page in GUIDES:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            if not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")
    assert broken == []


@pytest.mark.slow
def test_tests_and_modules_that_the_methods_name_exist() -> None:
    files = {path.name for path in REPO.rglob("*.py") if ".venv" not in path.parts}
    functions = {
        name
        for path in (REPO / "tests").rglob("*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.M)
    }
    gone = []
    for page in METHODS.glob("*.md"):
        text = page.read_text("utf-8")
        for name in re.findall(r"`(?:[\w/]*/)?(\w+\.py)`", text):
            if name not in files:
                gone.append(f"{page.name}: {name}")
        for name in re.findall(r"`(test_\w+)`", text):
            if name not in functions and f"{name}.py" not in files:
                gone.append(f"{page.name}: {name}")
    assert gone == []
