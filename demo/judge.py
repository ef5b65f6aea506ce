"""The demo's language model: a chat completions server that errs as a model does, on loopback.

It knows the demo's complete relevance table and grades by a confusion table of its own, so that
machine judges can be tried where no model is at hand:

    python -m demo.judge --port 9100
"""

import argparse
import contextlib
import gzip
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from demo.assessors import AssessorProfile, Truth, load_truth, simulated_grade

COLLECTION = Path(__file__).parent / "collection"
MODEL = "demo-judge"
HOST = "127.0.0.1"
MOST_BYTES = 2**20
SEED = 7
PROFILE = AssessorProfile(
    username=MODEL,
    name="Demo judge",
    description="Kinder than people, and wrong in every third grade.",
    confusion=(
        (0.80, 0.15, 0.04, 0.01),
        (0.25, 0.45, 0.25, 0.05),
        (0.08, 0.22, 0.45, 0.25),
        (0.02, 0.08, 0.25, 0.65),
    ),
)
DOCUMENT = re.compile(r"<<<([0-9a-f]{32})\n(.*)\n\1>>>", re.DOTALL)


class UnknownPairError(ValueError):
    """A question that is not about a topic and a document of the demo."""


class Grader:
    """Finds out which pair a question is about, and grades it."""

    def __init__(self, folder: Path = COLLECTION) -> None:
        self.truth: Truth = load_truth(folder / "qrels.txt.gz")
        topics = (folder / "topics.jsonl").read_text(encoding="utf-8")
        self.topics = {row["title"]: row["id"] for row in _rows(topics)}
        documents = gzip.decompress((folder / "docs.jsonl.gz").read_bytes()).decode("utf-8")
        self.documents = {row["title"]: row["docno"] for row in _rows(documents)}

    def grade(self, question: str) -> int:
        """The grade for the document between the marks and the topic whose title stands before.

        Raises UnknownPairError.
        """
        found = DOCUMENT.search(question)
        title = found.group(2).partition("\n")[0] if found else ""
        before = question[: found.start()] if found else ""
        named = [topic for topic in self.topics if topic in before]
        if title not in self.documents or not named:
            raise UnknownPairError("it knows the topics and documents of the demo, and no others")
        topic, docno = self.topics[max(named, key=len)], self.documents[title]
        return simulated_grade(self.truth, PROFILE, seed=SEED, topic=topic, docno=docno)


@contextlib.contextmanager
def serving(port: int = 0) -> Iterator[str]:
    """Answers on a port of loopback, by default a free one; yields the address of the endpoint."""
    server = ThreadingHTTPServer((HOST, port), _handler(Grader()))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def _rows(text: str) -> Iterator[dict[str, str]]:
    return (json.loads(line) for line in text.splitlines())


def _handler(grader: Grader) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, {"data": [{"id": MODEL}]})

        def do_POST(self) -> None:
            try:
                said = self._asked()["messages"][-1]["content"]
                grade = grader.grade(str(said))
            except UnknownPairError as error:
                self._send(400, {"error": {"message": str(error)}})
            except (ValueError, KeyError, IndexError, TypeError):
                self._send(400, {"error": {"message": "expected a chat completion's JSON"}})
            else:
                self._send(200, _completion(json.dumps({"grade": grade, "reason": "It seems so."})))

        def _asked(self) -> dict[str, list[dict[str, str]]]:
            length = int(self.headers.get("Content-Length", 0))
            if not 0 <= length <= MOST_BYTES:
                raise ValueError(length)
            found: dict[str, list[dict[str, str]]] = json.loads(self.rfile.read(length))
            return found

        def _send(self, status: int, answer: object) -> None:
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nobody reads a line per question."""

    return Handler


def _completion(content: str) -> dict[str, object]:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 500, "completion_tokens": 15}
    return {"model": MODEL, "choices": [choice], "usage": usage}


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve the demo's language model on loopback.")
    parser.add_argument("--port", type=int, default=9100)
    with serving(parser.parse_args().port) as url:
        print(f"MACHINE_ENDPOINTS=demo MACHINE_DEMO_URL={url} MACHINE_DEMO_MODELS={MODEL}")
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
