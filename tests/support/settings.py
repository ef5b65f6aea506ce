"""The product's settings for the pytest process: own data directory, quick passwords.

Every pytest process (every xdist worker) gets a data directory of its own, which the processes it
starts inherit; those run the product's settings unchanged.
"""

import atexit
import os
import shutil
import tempfile

from tests.support import scratch

scratch.begin()
_data = tempfile.mkdtemp(prefix="evalsite-tests-")
atexit.register(shutil.rmtree, _data, ignore_errors=True)
os.environ["EVALSITE_DATA"] = _data
os.environ.setdefault("EVALSITE_TEST_SHARED", _data)  # the folder of the process that starts others

if os.environ.get("EVALSITE_TEST_DATABASE") == "postgres":
    from tests.support.postgres import shared_cluster

    os.environ["DATABASE_URL"] = shared_cluster()

from estimation.endpoints import Endpoint  # noqa: E402
from evalsite.settings import *  # noqa: E402, F403

os.environ.pop("DATABASE_URL", None)
os.environ["DJANGO_SETTINGS_MODULE"] = "evalsite.settings"

STATIC_ROOT.mkdir()  # noqa: F405  (or WhiteNoise warns in every test)
# Declared, and never there: the discard port, where nobody listens.
MACHINE_ENDPOINTS = {"nowhere": Endpoint("nowhere", "http://127.0.0.1:9/v1", ("small",))}
# Leases are prolonged on a connection of their own, which does not see a test's transaction.
JOB_LEASE_SECONDS = 600
# Two or three seconds for each report; tests that are about it take the fixture `on_paper`.
REPORT_PDF = False
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

_database = DATABASES["default"]  # noqa: F405
if _database["ENGINE"] == "evalsite.sqlite":
    # A file, as in the product: threads of an in-memory database share one cache and its locks.
    _database["TEST"] = {"NAME": os.path.join(_data, "test.sqlite3")}
