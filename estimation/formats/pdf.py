"""A page of HTML as PDF: a program of its own, which a worker starts and may end.

``python -m estimation.formats.pdf``: standard input has `request` as JSON, standard output gets the
PDF. It has bounds of memory and processor time, and reads nothing but what it is given: no network,
no file. Its exit code says what was wrong (`NO_LIBRARY`, `TOO_LARGE`), and its standard error why.
"""

import base64
import json
import re
import resource
import sys

from estimation.formats.svg_styles import Room, drawings_in, standing_alone

NO_LIBRARY, TOO_LARGE = 3, 4
CPU_SECONDS = 300
MEMORY_BYTES = 3 * 2**30
FRAMED = Room(520, 180, left=44, top=10, right=16, bottom=26)
FOREST_ROW = Room(320, 30)
FOREST_AXIS = Room(200, 18)
PLAIN = Room(300, 16)
MATRIX = 0.66
"""How large a matrix of verdicts is on paper, beside the screen."""
_WIDTH = re.compile(r' width="([0-9.]+)"')
STYLE, STYLE_ENDS = "<style>", "</style>"


class NotFetched(ValueError):
    """The page asks for something that is not in it."""


def request(page: str, styles: str) -> bytes:
    """What the program is asked: a page with its styles inside, and those for paper instead."""
    return json.dumps({"page": page, "styles": styles}).encode()


def refuse(url: str) -> None:
    """The only addresses that are looked at are those that hold their content themselves."""
    if not url.lower().startswith("data:"):
        raise NotFetched(f"not looked up: {url[:80]}")


def _fetcher() -> object:
    from weasyprint.urls import URLFetcher  # noqa: PLC0415

    class OnlyData(URLFetcher):  # type: ignore[misc]
        def fetch(self, url: str, headers: object = None) -> object:
            refuse(url)
            return super().fetch(url, headers)

    return OnlyData(allowed_protocols=["data"])


def for_paper(page: str, styles: str) -> str:
    """The page with the styles for paper, and with drawings that need none."""
    start = page.index(STYLE) + len(STYLE)
    end = page.index(STYLE_ENDS, start)
    own = page[start:end]
    pieces, last = [page[:start], styles], end
    for begin, stop in drawings_in(page):
        pieces += [page[last:begin], _picture(page[begin:stop], own)]
        last = stop
    return "".join([*pieces, page[last:]])


def _picture(drawing: str, styles: str) -> str:
    tag = drawing[: drawing.index(">")]
    if "framed" in tag:
        room = FRAMED
    elif "axis" in tag:
        room = FOREST_AXIS
    else:
        room = FOREST_ROW if "forest" in tag else PLAIN
    content = base64.b64encode(standing_alone(drawing, styles, room).encode()).decode()
    own = _WIDTH.search(tag) if "matrix" in tag else None
    width = f' style="width: {float(own[1]) * MATRIX:.0f}px"' if own else ""
    return f'<img alt=""{width} src="data:image/svg+xml;base64,{content}">'


def main() -> int:
    """Do what was asked; return the exit code."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    asked = json.loads(sys.stdin.buffer.read())
    try:
        from weasyprint import HTML  # noqa: PLC0415
    except OSError as error:  # Pango, or what it needs, is not on this machine
        sys.stderr.write(f"{error}\n")
        return NO_LIBRARY
    try:
        page = HTML(string=for_paper(**asked), url_fetcher=_fetcher())
        page.write_pdf(sys.stdout.buffer)
    except MemoryError:
        return TOO_LARGE
    return 0


if __name__ == "__main__":
    sys.exit(main())
