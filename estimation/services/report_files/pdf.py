"""The report as PDF, from the same HTML, made by a program of its own with bounds."""

import subprocess
import sys

from django.conf import settings

from estimation.formats import pdf
from estimation.models import EstimateSet, Round
from estimation.services.files import path_of
from estimation.services.report_files import page
from estimation.services.report_files.kinds import NotForThisRound, ReportKind
from estimation.services.report_files.styles import styles
from judging.errors import UserError

SECONDS = 600
MOST_BYTES = 64 * 2**20
INSTALL = "apt-get install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 fonts-dejavu-core"


def make(row: Round, shown: EstimateSet) -> bytes:
    """No worker loads what makes PDFs, nor waits for it without end.

    Raises NotForThisRound where the system library is missing or the site makes none, UserError
    ``pdf_failed``.
    """
    _check_that_it_is_made_here()
    made = shown.reports.filter(name=page.PAGE.name, refused="").first()
    return printed(path_of(made.file).read_text() if made else page.make(row, shown))


def printed(html: str, *, seconds: float = SECONDS) -> bytes:
    """A page with styles of its own as PDF; see `make`."""
    _check_that_it_is_made_here()
    asked = pdf.request(html, styles("css/pdf.css"))
    program = [sys.executable, "-m", pdf.__name__]
    try:
        done = subprocess.run(  # noqa: S603 (our own program)
            program, input=asked, capture_output=True, timeout=seconds, cwd=settings.BASE_DIR,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise _failed(f"it took longer than {seconds:g} s") from None
    if done.returncode == pdf.NO_LIBRARY:
        message = (
            "A PDF needs the system library Pango, which this machine does not have. "
            f"Its administrator installs it with “{INSTALL}”; the page itself prints as well."
        )
        raise NotForThisRound(message)
    if done.returncode == pdf.TOO_LARGE or len(done.stdout) > MOST_BYTES:
        raise _failed("it is too large")
    if done.returncode or not done.stdout.startswith(b"%PDF-"):
        last = done.stderr.decode(errors="replace").strip().rsplit("\n", 1)[-1][:200]
        raise _failed(last or f"its program ended with {done.returncode}")
    return done.stdout


def _check_that_it_is_made_here() -> None:
    if not settings.REPORT_PDF:
        message = (
            "This site makes no PDF (its administrator has set REPORT_PDF to off); the page itself "
            "prints as well."
        )
        raise NotForThisRound(message)


def _failed(why: str) -> UserError:
    return UserError(
        "pdf_failed", f"The PDF could not be made: {why}. The page itself prints, too."
    )


PDF = ReportKind(
    "report.pdf",
    "The report on A4, to send and to file.",
    content_type="application/pdf",
    make=make,
    group="To read",
)
