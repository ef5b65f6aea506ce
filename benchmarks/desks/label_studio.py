"""Label Studio: the server of `label-studio start`, on SQLite.

An answer takes two requests of its interface: it is saved, and the next task is asked for.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.clients import FORM, GRADES, JSON, PEOPLE, Client, NoAnswer, Visitor
from benchmarks.desks.desk import (
    SCALE,
    Desk,
    Label,
    environment,
    items,
    numbered,
    process,
    wait_ready,
)
from tests.support.client import CSRF_FIELD
from tests.support.ports import free_port
from tests.support.site import PASSWORD

OWNER = "owner@example.org"
CHOICES = "".join(f'<Choice value="{grade}"/>' for grade in SCALE)
CONFIG = f"""<View>
<Header value="$topic"/><Text name="document" value="$document"/>
<Choices name="grade" toName="document" choice="single" required="true">{CHOICES}</Choices>
</View>"""
PROJECT = {"title": "judging", "label_config": CONFIG, "maximum_annotations": 1}
ALONE = {  # nothing is told to others, and nothing asked of them
    "COLLECT_ANALYTICS": "false",
    "LATEST_VERSION_CHECK": "false",
    "SENTRY_DSN": "",
    "FRONTEND_SENTRY_DSN": "",
}
STORED = """
SELECT task_id, email, result FROM task_completion
JOIN htx_user ON htx_user.id = completed_by_id WHERE NOT was_cancelled
"""


def enter(visitor: Visitor, path: str, name: str) -> None:
    """By the form at ``path``, which is that to sign in or to sign up."""
    token = CSRF_FIELD.search(visitor.ask("GET", path).decode())
    if token is None:
        raise NoAnswer(f"{path} is no form")
    fields = {"email": name, "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
    visitor.ask("POST", path, urlencode(fields), FORM, accepted=[302])


class Person(Client):
    def __init__(self, url: str, name: str, project: int) -> None:
        super().__init__(url)
        self.project = project
        enter(self, "/user/signup/", name)
        self.task = self._next()

    def _next(self) -> int:
        return int(json.loads(self.ask("GET", f"/api/projects/{self.project}/next"))["id"])

    def judge(self, number: int) -> None:
        choice = {"choices": [SCALE[number % GRADES]]}
        result = {"from_name": "grade", "to_name": "document", "type": "choices", "value": choice}
        answer = {"result": [result], "lead_time": 2.5, "project": self.project}
        path = f"/api/tasks/{self.task}/annotations?project={self.project}"
        self.ask("POST", path, json.dumps(answer), JSON)
        self.task = self._next()


def prepared(owner: Visitor) -> int:
    """A project with all items; its number."""
    enter(owner, "/user/login/", OWNER)
    made = json.loads(owner.ask("POST", "/api/projects/", json.dumps(PROJECT), JSON))
    rows = [{"name": name, "topic": topic, "document": text} for name, topic, text in items()]
    owner.ask("POST", f"/api/projects/{made['id']}/import", json.dumps(rows), JSON)
    return int(made["id"])


@contextmanager
def started(python: Path, folder: Path) -> Iterator[Desk]:
    port = free_port()
    command = [
        *(str(python.with_name("label-studio")), "start", "--no-browser"),
        *("--data-dir", str(folder), "--internal-host", "127.0.0.1", "--port", str(port)),
        *("--username", OWNER, "--password", PASSWORD),
    ]
    server = process("label-studio", command, folder, environment(folder, ALONE))
    server.start()
    try:
        url = f"http://127.0.0.1:{port}"
        wait_ready(server, url, "/user/login/")
        project = prepared(Visitor(url))
        clients = [Person(url, f"person{n}@example.org", project) for n in range(PEOPLE)]
        yield Desk([server.pid], clients, lambda: stored(folder / "label_studio.sqlite3"))
    finally:
        server.kill()


def stored(database: Path) -> Sequence[Label]:
    """What stands in its database."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute(STORED).fetchall()
    return [
        Label(str(task), numbered(name), int(each["value"]["choices"][0]))
        for task, name, result in rows
        for each in json.loads(result)
    ]
