"""The kinds of report files: the one table of them, in the order in which they are made."""

from estimation.services.report_files.collection import COLLECTION
from estimation.services.report_files.estimates_csv import ESTIMATES_CSV
from estimation.services.report_files.estimates_json import ESTIMATES_JSON
from estimation.services.report_files.judgments import JUDGMENTS
from estimation.services.report_files.page import PAGE
from estimation.services.report_files.qrels import QRELS
from estimation.services.report_files.tables_tex import TABLES_TEX

KINDS = (ESTIMATES_CSV, ESTIMATES_JSON, QRELS, JUDGMENTS, PAGE, TABLES_TEX, COLLECTION)
REPORTS = {kind.name: kind for kind in KINDS}
PURPOSES = [(kind.name, kind.purpose) for kind in KINDS]
