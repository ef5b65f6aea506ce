"""The kinds of report files: the one table of them, in the order in which they are made."""

from estimation.services.report_files.collection import COLLECTION
from estimation.services.report_files.estimates_csv import ESTIMATES_CSV
from estimation.services.report_files.estimates_json import ESTIMATES_JSON
from estimation.services.report_files.estimates_xlsx import ESTIMATES_XLSX
from estimation.services.report_files.judgments import JUDGMENTS
from estimation.services.report_files.labels import LABELS
from estimation.services.report_files.page import PAGE
from estimation.services.report_files.pairs import PAIRS
from estimation.services.report_files.pdf import PDF
from estimation.services.report_files.plots import PLOTS
from estimation.services.report_files.prels import PRELS
from estimation.services.report_files.qrels import QRELS
from estimation.services.report_files.strata import STRATA
from estimation.services.report_files.tables_tex import TABLES_TEX

KINDS = (
    PAGE, PDF, ESTIMATES_CSV, ESTIMATES_XLSX, TABLES_TEX, PLOTS, JUDGMENTS, LABELS, PAIRS, QRELS,
    STRATA, PRELS, ESTIMATES_JSON, COLLECTION,
)  # fmt: skip
REPORTS = {kind.name: kind for kind in KINDS}
PURPOSES = [(kind.name, kind.purpose) for kind in KINDS]
