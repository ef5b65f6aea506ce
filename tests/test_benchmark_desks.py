"""Desks of others beside ours: small servers in the place of those that take minutes to start."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks import __main__ as everything
from benchmarks.clients import GRADES, Client, NoAnswer, of_everybody
from benchmarks.desks import __main__ as command
from benchmarks.desks import trials
from benchmarks.desks.desk import Desk, Label, environment, items, numbered, process, wait_ready
from benchmarks.desks.own import NAMES, PAGE, REST
from benchmarks.desks.table import reason, rows
from benchmarks.desks.trials import BEFORE, BLOCKS, JUDGMENTS, Lost, NotInstalled, Took, measured
from benchmarks.figures import table
from benchmarks.peers import HERE, pinned
from tests.support.ports import free_port

SERVER = """
import json, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
port, kind = int(sys.argv[1]), sys.argv[2]
labels = []

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200, labels)

    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Cookie"] != "seen=yes":
            return self.answer(403, [])
        until = time.thread_time() + 0.002
        while time.thread_time() < until:
            pass
        if kind == "full" and len(labels) > 50:
            return self.answer(507, [])
        if not (kind == "lossy" and given[2] == 3):
            labels.append(given)
        self.answer(201, [])

    def answer(self, status, told):
        body = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Set-Cookie", "seen=yes; Path=/; HttpOnly")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
PEOPLE = 2
ALL = PEOPLE * (BEFORE + BLOCKS * JUDGMENTS)


class Person(Client):
    """Judges the same items as everybody, or others, or the same one all the time."""

    def __init__(self, url: str, who: int, kind: str) -> None:
        super().__init__(url)
        self.who, self.kind, self.done = who, kind, 0
        self.ask("GET", "/")

    def judge(self, number: int) -> None:
        whose = "" if self.kind == "shared" else f"{self.who}-"
        item = 0 if self.kind == "again" else self.done
        self.ask("POST", "/", json.dumps([f"{whose}{item}", self.who, number % GRADES]))
        self.done += 1


@contextmanager
def desk(folder: Path, kind: str) -> Iterator[Desk]:
    folder.mkdir()
    port = free_port()
    server = process("desk", [sys.executable, "-c", SERVER, str(port), kind], folder, {})
    server.start()
    try:
        url = f"http://127.0.0.1:{port}"
        wait_ready(server, url, "/")
        people = [Person(url, who, kind) for who in range(PEOPLE)]

        def stored() -> list[Label]:
            return [Label(*each) for each in json.loads(people[0].ask("GET", "/"))]

        yield Desk([server.pid], people, stored)
    finally:
        server.kill()


@contextmanager
def own(folder: Path) -> Iterator[dict[str, Desk]]:
    with desk(folder / "own", "plain") as ours:
        yield {PAGE: ours}


def start(folder: Path, kind: str) -> Callable[[], object]:
    return lambda: desk(folder / kind, kind)


@contextmanager
def nobody(error: Exception) -> Iterator[Desk]:
    raise error
    yield


# ------------------------------------------------------------------------------- which there are


def test_every_tool_has_a_list_in_which_all_is_pinned() -> None:
    assert {path.stem for path in (HERE / "desk-peers").glob("*.txt")} == set(command.PEERS)
    for name, peer in command.PEERS.items():
        versions = pinned(f"desk-peers/{name}")
        assert all(versions.values()), name
        assert next(iter(versions)) == peer.package
        assert command.title(name) == f"{peer.title} {versions[peer.package]}"


def test_some_of_the_tools_can_be_chosen() -> None:
    assert command._options().parse_args([]).only == list(command.PEERS)
    assert command._options().parse_args(["--only", "doccano,potato"]).only == ["doccano", "potato"]
    with pytest.raises(SystemExit):
        command._options().parse_args(["--only", "potato,nothing"])
    assert everything.COMMANDS["desks"] == ("benchmarks.desks",)


def test_everybody_judges_the_items_of_our_site() -> None:
    names = [name for name, _, _ in items()]
    assert len(set(names)) == len(names) == 1200
    assert numbered("person7@example.org") == 7
    with pytest.raises(NoAnswer):
        numbered("owner@example.org")


def test_a_server_of_others_has_no_configuration_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///ours")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "evalsite.settings")
    told = environment(tmp_path, {"A": "1"})
    assert told["HOME"] == str(tmp_path)
    assert told["A"] == "1"
    assert "DATABASE_URL" not in told
    assert "DJANGO_SETTINGS_MODULE" not in told


# ------------------------------------------------------------------------------ what is measured


@pytest.mark.slow
@pytest.mark.services
def test_all_labels_are_counted_and_who_fails_is_a_row(tmp_path: Path) -> None:
    starts = {
        "plain": start(tmp_path, "plain"),
        "shared": start(tmp_path, "shared"),
        "again": start(tmp_path, "again"),
        "lossy": start(tmp_path, "lossy"),
        "full": start(tmp_path, "full"),
        "absent": lambda: nobody(NotInstalled("pip could not install it")),
        "broken": lambda: nobody(KeyError("csrftoken")),
    }
    found = measured(lambda: own(tmp_path), starts)
    assert list(found) == [PAGE, *starts]
    for name, beyond, doubles in (
        (PAGE, 0, 0),
        ("plain", 0, 0),
        ("shared", ALL // 2, 0),
        ("again", ALL - PEOPLE, ALL - PEOPLE),
    ):
        took = found[name]
        assert isinstance(took, Took), took
        assert (took.labels, took.beyond, took.doubles) == (ALL, beyond, doubles)
        assert took.cost >= 1.8  # each request works for 2 ms in a thread of the server
        assert took.median <= took.p95
    lines = table(rows(found))
    assert (
        f"shared, 8 clients ({ALL // 2} of {ALL} labels beyond the one wanted of a pair) |"
        in lines[6]
    )
    lost = sum(number % GRADES == 3 for block in [BEFORE, *[JUDGMENTS] * BLOCKS]
               for number in range(block))  # fmt: skip
    said = f"not measured: of {ALL} labels that were given {ALL - PEOPLE * lost} are stored"
    assert [line for line in lines if "lossy" in line] == [
        f"| one judgment, lossy, 8 clients | {said} |  |  |  |  |"
    ]
    assert [line.split(" | ")[1] for line in lines[-3:]] == [
        "not measured: / answers 507: b'[]'",
        "not measured: pip could not install it",
        "not measured: KeyError('csrftoken')",
    ]


@pytest.mark.services
def test_what_ours_fail_with_is_raised(tmp_path: Path) -> None:
    @contextmanager
    def lossy() -> Iterator[dict[str, Desk]]:
        with desk(tmp_path / "own", "lossy") as ours:
            yield {PAGE: ours}

    with pytest.raises(Lost):
        measured(lossy, {})


@pytest.mark.services
def test_a_label_of_another_grade_is_a_lost_one(tmp_path: Path) -> None:
    with desk(tmp_path / "desk", "plain") as plain:
        trial = trials.Trials(plain)
        trial.warm()
        trial.block()
        assert trial.took().labels == PEOPLE * (BEFORE + JUDGMENTS)
        right = plain.stored()
        changed = [right[0]._replace(grade=(right[0].grade + 1) % GRADES), *right[1:]]
        trial.desk = Desk(plain.processes, plain.clients, lambda: changed)
        with pytest.raises(Lost):
            trial.took()


@pytest.mark.services
def test_why_somebody_could_not_judge_is_said(tmp_path: Path) -> None:
    with (
        desk(tmp_path / "desk", "full") as full,
        pytest.raises(NoAnswer, match=r"/ answers 507"),
    ):
        of_everybody(full.clients, 60)


@pytest.mark.services
def test_a_server_that_ends_is_said_with_its_last_words(tmp_path: Path) -> None:
    ending = "import sys; print('no such option\\n'); sys.exit(2)"
    server = process("desk", [sys.executable, "-c", ending], tmp_path, {})
    server.start()
    with pytest.raises(NoAnswer, match=r"^its server ended with 2 and said no such option$"):
        wait_ready(server, f"http://127.0.0.1:{free_port()}", "/")


def test_what_cannot_be_installed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(command, "FOLDER", tmp_path / "file")  # no environment can be made there
    with pytest.raises(NotInstalled, match=r"^pip could not install it"), command.begun("potato"):
        pass


@pytest.mark.slow
@pytest.mark.services
def test_the_command_goes_on_without_what_cannot_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(command, "FOLDER", tmp_path / "file")
    monkeypatch.setattr(command.own, "started", lambda: own(tmp_path))
    assert command.main(["--only", "potato"]) == 0
    lines = capsys.readouterr().out.splitlines()
    absent = "not measured: pip could not install it"
    assert lines[-1].startswith(f"| one judgment, {command.title('potato')}, 8 clients | {absent}")


@pytest.mark.slow
@pytest.mark.services
def test_the_command_fails_where_a_tool_does_that_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "begun", lambda name: desk(tmp_path / name, "lossy"))
    monkeypatch.setattr(command.own, "started", lambda: own(tmp_path))
    assert command.main(["--only", "potato"]) == 1
    assert "are stored" in capsys.readouterr().out.splitlines()[-1]


# ------------------------------------------------------------------------------------- the table


def took(cost: float, **values: int) -> Took:
    return Took(cost, 20.0, 30.0, **{"labels": 400, "beyond": 0, "doubles": 0} | values)


def test_each_stands_beside_ours_and_ours_beside_the_least() -> None:
    found = {PAGE: took(6.0), REST: took(4.0), "one": took(24.0), "other": took(18.0)}
    assert set(NAMES) < set(found)
    figures = [each for each in rows(found) if "percentile" not in each.work]
    assert [(each.beside, each.reference) for each in figures] == [
        ("other", 18.0),
        ("other", 18.0),
        (PAGE, 6.0),
        (PAGE, 6.0),
    ]
    waits = [each for each in rows(found) if "percentile" in each.work]
    assert {(each.value, each.beside, each.reference) for each in waits} == {
        (30.0, "in the middle", 20.0)
    }


def test_ours_stand_alone_where_nobody_else_was_measured() -> None:
    figures = list(rows({PAGE: took(6.0), "one": NoAnswer("it did not start")}))
    assert [each.reference for each in figures] == [None, 20.0, None]
    assert figures[2].cells[1] == "not measured: it did not start"
    assert figures[2].met is None


def test_labels_that_nobody_asked_for_are_told() -> None:
    figure, _ = rows({"one": took(9.0, beyond=12, doubles=2)})
    assert figure.work.endswith(
        "(12 of 400 labels beyond the one wanted of a pair, 2 by the same person)"
    )


def test_a_reason_is_one_cell() -> None:
    said = reason(NoAnswer("a | b\n" + "c" * 1000))
    assert "|" not in said
    assert "\n" not in said
    assert len(said) < 200
