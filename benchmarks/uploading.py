"""From 128 run files to a pool, by the REST interface: processor time of who answers and who reads.

`.venv/bin/python -m benchmarks.uploading` makes run files of 50 topics with 1 000 documents, sends
them to a site of its own on SQLite, some in a request, has them read, and has the pool built, all
in one process. The client's work, which is to put files into requests, is not counted.
"""

import argparse
import cProfile
import os
import pstats
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

OPTIONS = argparse.ArgumentParser(description=__doc__.splitlines()[0])
OPTIONS.add_argument("--runs", type=int, default=128)
OPTIONS.add_argument("--unsorted", action="store_true", help="lists in no order")
OPTIONS.add_argument("--profile", action="store_true", help="the hottest spots of every part")
GIVEN = OPTIONS.parse_args() if __name__ == "__main__" else OPTIONS.parse_args([])

DATA = tempfile.TemporaryDirectory(prefix="evalsite-benchmark-")  # removed at the end
os.environ["EVALSITE_DATA"] = DATA.name
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402

from benchmarks.figures import Figure, tell  # noqa: E402
from benchmarks.reading import DEPTH, TOPICS, write_runs  # noqa: E402
from estimation.services import pools  # noqa: E402
from judging.models import Campaign, Upload  # noqa: E402
from judging.services import campaigns  # noqa: E402
from tests.support import factories  # noqa: E402

AT_ONCE, MOST = 16, 10.0  # files in a request; seconds
EDGE = "edge-of-parts"
SCALE = [{"name": name, "meaning": ""} for name in ("no", "yes")]


def seconds(name: str, work: Callable[[], object]) -> float:
    profile = cProfile.Profile(time.process_time) if GIVEN.profile else None
    start = time.process_time()
    profile.runcall(work) if profile else work()
    taken = time.process_time() - start
    print(f"  {taken:6.2f} s {name}", flush=True)
    if profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    return taken


def body(paths: list[Path]) -> bytes:
    """Files as a client puts them into a request."""
    parts = []
    for path in paths:
        told = f'form-data; name="files"; filename="{path.name}"'
        head = f"--{EDGE}\r\nContent-Disposition: {told}\r\nContent-Type: text/plain\r\n\r\n"
        parts += [head.encode(), path.read_bytes(), b"\r\n"]
    kind = f'--{EDGE}\r\nContent-Disposition: form-data; name="kind"\r\n\r\nrun\r\n--{EDGE}--\r\n'
    return b"".join([*parts, kind.encode()])


def send(client: Client, made: Campaign, paths: list[Path]) -> float:
    """All files; processor seconds of the answers."""
    taken = 0.0
    for start in range(0, len(paths), AT_ONCE):
        content, kind = (
            body(paths[start : start + AT_ONCE]),
            f"multipart/form-data; boundary={EDGE}",
        )
        began = time.process_time()
        answer = client.post(f"/api/campaigns/{made.slug}/uploads/", content, content_type=kind)
        taken += time.process_time() - began
        if answer.status_code != 201:
            raise SystemExit(f"the files were not taken: {answer.content[:500]!r}")
    print(f"  {taken:6.2f} s taking them in", flush=True)
    return taken


def main() -> None:
    call_command("migrate", verbosity=0)
    plan = campaigns.CampaignPlan(name="c", slug="c", depth=DEPTH, grades=SCALE)
    made = campaigns.create(by=factories.user("organizer", is_organizer=True), plan=plan)
    topics = "".join(f"{401 + number}\ttopic\n" for number in range(TOPICS))
    factories.stored_upload(made, topics.encode(), name="topics.tsv", kind="topics")
    client = Client(SERVER_NAME="localhost")
    client.force_login(made.created_by)
    with tempfile.TemporaryDirectory() as folder:
        paths = write_runs(Path(folder), GIVEN.runs, ["unsorted"] if GIVEN.unsorted else [])
        print(f"{len(paths)} run files; seconds of one processor")
        taken = send(client, made, paths)
    taken += seconds("reading them", factories.run_due_jobs)
    states = set(made.uploads.values_list("state", flat=True))
    if states != {Upload.State.ACCEPTED}:
        raise SystemExit(f"not all were accepted: {states}")
    taken += seconds("building the pool", lambda: pools.ensure(made))
    tell(Figure(f"{len(paths)} run files by REST, until the pool is built", taken, "s", most=MOST))


if __name__ == "__main__":
    main()
