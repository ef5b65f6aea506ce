"""Potato: one process of Flask, which keeps everything in memory and writes it to files.

An answer takes three requests of its page: it is saved, the server goes on to the next item, and
the page of that item is fetched. In its usual order whoever comes first is handed all items, and
all others the same ones after that, so everybody has a share of them here
(``max_annotations_per_user``). In its random order some requests of 8 people at once fail ("deque
mutated during iteration").
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.clients import (
    DOCUMENTS,
    FORM,
    GRADES,
    JSON,
    PEOPLE,
    TOPICS,
    Client,
    NoAnswer,
)
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

ITEM = re.compile(rb'id="instance_id"[^>]*value="([^"]+)"')
MOVES = JSON | {"X-Potato-Navigation": "1"}
SCHEME = {
    "annotation_type": "radio",
    "name": "grade",
    "description": "How relevant is the document?",
    "labels": SCALE,
    "label_requirement": {"required": True},
}
TASK = {
    "annotation_task_name": "judging",
    "task_dir": ".",
    "site_dir": "default",
    "data_files": ["items.jsonl"],
    "item_properties": {"id_key": "id", "text_key": "text"},
    "output_annotation_dir": "answers",
    "output_annotation_format": "jsonl",
    "user_config": {"allow_all_users": True, "users": []},
    "require_password": True,
    "num_annotators_per_item": 1,
    "max_annotations_per_user": TOPICS * DOCUMENTS // PEOPLE,
    "annotation_schemes": [SCHEME],
}


class Person(Client):
    def __init__(self, url: str, name: str) -> None:
        super().__init__(url)
        account = urlencode({"email": name, "pass": PASSWORD})
        self.ask("POST", "/register", account, FORM, accepted=[302])
        self.item = self._next()

    def _next(self) -> str:
        page = self.ask("GET", "/annotate")
        found = ITEM.search(page)
        if found is None:
            raise NoAnswer("no item to judge")
        return found[1].decode()

    def judge(self, number: int) -> None:
        grade = SCALE[number % GRADES]
        answer = {
            "instance_id": self.item,
            "annotations": {f"grade:{grade}": grade},
            "cleared_schemas": [],
            "span_annotations": [],
            "client_timestamp": datetime.now(UTC).isoformat(),
            "response_time_seconds": 2.5,
        }
        said = json.loads(self.ask("POST", "/updateinstance", json.dumps(answer), JSON))
        if said["status"] != "success":
            raise NoAnswer(f"an answer is not saved: {said}")
        onward = {"action": "next_instance", "instance_id": self.item}
        self.ask("POST", "/annotate", json.dumps(onward), MOVES)
        self.item = self._next()


@contextmanager
def started(python: Path, folder: Path) -> Iterator[Desk]:
    rows = [{"id": name, "text": f"{topic}\n\n{text}"} for name, topic, text in items()]
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "task.yaml").write_text(json.dumps(TASK))  # JSON is YAML
    port = free_port()
    program, place = str(python.with_name("potato")), ["--host", "127.0.0.1", "-p", str(port)]
    command = [program, "start", "task.yaml", *place]
    server = process("potato", command, folder, environment(folder, {}))
    server.start()
    try:
        url = f"http://127.0.0.1:{port}"
        wait_ready(server, url, "/")
        clients = [Person(url, f"person{n}") for n in range(PEOPLE)]
        yield Desk([server.pid], clients, lambda: stored(folder / "answers"))
    finally:
        server.kill()


def stored(folder: Path) -> Sequence[Label]:
    """What stands in the files of all who judge."""
    found = []
    for path in folder.glob("*/user_state.json"):
        given = json.loads(path.read_text())["instance_id_to_label_to_value"]
        for item, answers in given.items():
            for _, grade in answers:
                found.append(Label(item, numbered(path.parent.name), int(grade)))
    return found
