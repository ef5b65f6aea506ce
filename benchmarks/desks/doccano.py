"""doccano: gunicorn with as many processes as `doccano webserver` has, on SQLite.

An answer takes three requests of its interface: the label is saved, the document is marked as
done, and the next one is asked for. No number of labels can be wanted of a document: everybody may
judge all of them, here each in an order of their own. No label needs its task queue, which is not
started.
"""

import json
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import psutil

from benchmarks.clients import GRADES, JSON, PEOPLE, Client, NoAnswer
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
from tests.support.ports import free_port
from tests.support.site import PASSWORD

PROJECT = 1
FIND = "import backend, os; print(os.path.dirname(backend.__file__))"
PREPARE = """
import json, sys
import django
django.setup()
from django.contrib.auth.models import User
from django.core.management import call_command
from examples.models import Example
from label_types.models import CategoryType
from projects.models import Member, ProjectType, TextClassificationProject
from roles.models import Role
given = json.load(sys.stdin)
for command in ("migrate", "create_roles"):
    call_command(command, verbosity=0)
owner = User.objects.create_superuser("owner", password=given["password"])
project = TextClassificationProject.objects.create(
    name="judging", project_type=ProjectType.DOCUMENT_CLASSIFICATION, created_by=owner,
    random_order=True, single_class_classification=True, collaborative_annotation=False,
)
assert project.pk == given["project"]
role = Role.objects.get(name="annotator")
for name in given["people"]:
    user = User.objects.create_user(name, password=given["password"])
    Member.objects.create(project=project, user=user, role=role)
for grade in given["scale"]:
    CategoryType.objects.create(project=project, text=grade)
Example.objects.bulk_create(
    Example(project=project, text=text, meta={"id": name}) for name, text in given["items"]
)
"""
STORED = """
SELECT example_id, username, text FROM labels_category
JOIN auth_user ON auth_user.id = user_id
JOIN label_types_categorytype ON label_types_categorytype.id = label_id
"""


class Person(Client):
    def __init__(self, url: str, name: str) -> None:
        super().__init__(url)
        account = {"username": name, "password": PASSWORD}
        self.ask("POST", "/v1/auth/login/", json.dumps(account), JSON)
        self.headers = JSON | {"X-CSRFToken": self.cookies["csrftoken"]}
        kinds = json.loads(self.ask("GET", f"/v1/projects/{PROJECT}/category-types"))
        self.labels = {each["text"]: each["id"] for each in kinds}
        self.done = 0
        self.example = self._next()

    def _next(self) -> int:
        place = f"limit=1&offset={self.done}&q=&confirmed=&ordering="
        found = json.loads(self.ask("GET", f"/v1/projects/{PROJECT}/examples?{place}"))
        if not found["results"]:
            raise NoAnswer("no document to judge")
        return int(found["results"][0]["id"])

    def judge(self, number: int) -> None:
        place = f"/v1/projects/{PROJECT}/examples/{self.example}"
        answer = {"label": self.labels[SCALE[number % GRADES]]}
        self.ask("POST", f"{place}/categories", json.dumps(answer), self.headers)
        self.ask("POST", f"{place}/states", "{}", self.headers)
        self.done += 1
        self.example = self._next()


def prepared(python: Path, folder: Path, env: dict[str, str]) -> None:
    """A project with all items and those who judge them."""
    given = {
        "project": PROJECT,
        "password": PASSWORD,
        "people": [f"person{n}" for n in range(PEOPLE)],
        "scale": SCALE,
        "items": [(name, f"{topic}\n\n{text}") for name, topic, text in items()],
    }
    done = subprocess.run(
        [python, "-c", PREPARE], input=json.dumps(given), env=env, cwd=folder,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise NoAnswer(f"it cannot be prepared: {done.stderr.strip()[-200:]}")


@contextmanager
def started(python: Path, folder: Path) -> Iterator[Desk]:
    asked = [python, "-c", FIND]
    backend = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    database = folder / "doccano.sqlite3"
    env = environment(
        folder,
        {
            "PYTHONPATH": backend,
            "DJANGO_SETTINGS_MODULE": "config.settings.production",
            "DATABASE_URL": f"sqlite:///{database}",
            "MEDIA_ROOT": str(folder / "media"),
            "STANDALONE": "True",
        },
    )
    prepared(python, folder, env)
    port = free_port()
    processes = 2 * (psutil.cpu_count() or 1) + 1
    command = [
        *(str(python), "-m", "gunicorn", "config.wsgi", "--chdir", backend),
        *("--bind", f"127.0.0.1:{port}", "--workers", str(processes)),
    ]
    server = process("doccano", command, folder, env)
    server.start()
    try:
        url = f"http://127.0.0.1:{port}"
        wait_ready(server, url, "/")
        clients = [Person(url, f"person{n}") for n in range(PEOPLE)]
        yield Desk([server.pid], clients, lambda: stored(database))
    finally:
        server.kill()


def stored(database: Path) -> Sequence[Label]:
    """What stands in its database."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute(STORED).fetchall()
    return [Label(str(example), numbered(name), int(text)) for example, name, text in rows]
