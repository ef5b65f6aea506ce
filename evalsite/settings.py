"""All settings, from the environment.

Nothing set: the embedded profile (SQLite and a filesystem broker under ``var/``, plain HTTP on
loopback). ``DATABASE_URL``, ``CELERY_BROKER_URL`` and ``SITE_URL`` make it a production one.
"""

import os
import secrets
import tomllib
import warnings
from pathlib import Path
from urllib.parse import urlsplit

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from estimation.endpoints import EndpointError, declared
from evalsite import private
from evalsite.environment import Environment

# Web servers and workers are as many processes as there are cores, and each computes in one thread:
# with a thread per core in every process BLAS took five times as long. Settings come before NumPy.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

BASE_DIR = Path(__file__).resolve().parent.parent
VERSION: str = tomllib.loads((BASE_DIR / "pyproject.toml").read_text("utf-8"))["project"]["version"]
env = Environment()

DATA_DIR = Path(env.str("EVALSITE_DATA", default=str(BASE_DIR / "var"))).resolve()
SITE_URL = env.str("SITE_URL", default="http://127.0.0.1:8000").rstrip("/")
HTTPS = SITE_URL.startswith("https://")
if not HTTPS and not SITE_URL.startswith("http://"):
    raise ImproperlyConfigured(
        f"SITE_URL is {SITE_URL}: expected an address that begins with https:// or http://"
    )
DEBUG = env.bool("DEBUG", default=False)
if DEBUG and HTTPS:
    raise ImproperlyConfigured("DEBUG must be off when SITE_URL is an https address")


def _folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(error) from None
    return path


def _unusable(error: OSError) -> ImproperlyConfigured:
    return ImproperlyConfigured(
        f"The data directory {DATA_DIR} cannot be used ({error.strerror}). Give this user the"
        " right to write there, or set EVALSITE_DATA to another folder."
    )


private.close_folder(_folder(DATA_DIR))


def _embedded_secret_key() -> str:
    """The key kept in the data directory; made once, whichever process comes first."""
    try:
        return _read_or_make_key(_folder(DATA_DIR) / "secret_key")
    except OSError as error:
        raise _unusable(error) from None


def _read_or_make_key(path: Path) -> str:
    if not path.exists():
        draft = path.with_name(f".secret_key.{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(64))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text()


SECRET_KEY = env.str("SECRET_KEY", default="") or ("" if HTTPS else _embedded_secret_key())
if len(SECRET_KEY) < 50:
    _where = "" if HTTPS or env.str("SECRET_KEY", default="") else f", in {DATA_DIR / 'secret_key'}"
    raise ImproperlyConfigured(
        f"SECRET_KEY has {len(SECRET_KEY)} characters{_where}: expected at least 50 random ones;"
        " it must be set when SITE_URL is an https address"
    )
if private.guessable(SECRET_KEY):
    raise ImproperlyConfigured(
        "SECRET_KEY is long but not random: it repeats itself, counts on or is an example. Whoever"
        " guesses it signs in as anybody. Make one with"
        " python -c 'import secrets; print(secrets.token_urlsafe(64))'"
    )

ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=[]) or [
    urlsplit(SITE_URL).hostname or "127.0.0.1",
    "127.0.0.1",
    "localhost",
    "[::1]",
]
CSRF_TRUSTED_ORIGINS = [SITE_URL]

INSTALLED_APPS = [
    "evalsite",  # first, so that its commands stand for those of the same name
    "django.contrib.admin.apps.SimpleAdminConfig",  # evalsite.urls loads what it shows
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "csp",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "judging",
    "estimation",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "evalsite.middleware.BodyLimitMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "judging.middleware.SignInMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "judging.middleware.SecondFactorMiddleware",
    "judging.middleware.UserErrorMiddleware",
]
ROOT_URLCONF = "evalsite.urls"
WSGI_APPLICATION = "evalsite.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# SQLite takes its write lock at BEGIN (IMMEDIATE), so that writers wait instead of failing; in a
# queue of our own, so that they wait in the order in which they came.
_ENGINES = ("django.db.backends.sqlite3", "django.db.backends.postgresql")
try:
    with warnings.catch_warnings(action="ignore"):  # of a kind that is not known, with the password
        _database = env.db_url("DATABASE_URL", default=f"sqlite:///{DATA_DIR / 'evalsite.sqlite3'}")
except ValueError:
    _database = {}
if _database.get("ENGINE") not in _ENGINES:
    raise ImproperlyConfigured(
        "DATABASE_URL names no database of evalsite: expected postgres://user:password@host/name,"
        " or sqlite:////folder/file"
    )
DATABASES = {"default": _database}
DATABASE_SECONDS = env.float("DATABASE_SECONDS", default=600)  # of a statement; web: 10
DATABASE_PREPARES = env.bool("DATABASE_PREPARES", default=True)
if _database["ENGINE"] == _ENGINES[0]:
    private.close_database(str(_database["NAME"]))
    _database["ENGINE"] = "evalsite.sqlite"
    _database["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;",
    }
else:
    _database["CONN_HEALTH_CHECKS"] = True
    _database["ENGINE"] = "evalsite.postgres"  # with an end to waiting for an answer
    _milliseconds = int(DATABASE_SECONDS * 1000)
    _database["OPTIONS"] = {
        "connect_timeout": 3,
        "options": f"-c statement_timeout={_milliseconds} -c lock_timeout={_milliseconds}"
        " -c plan_cache_mode=force_generic_plan",  # of what is prepared: planned once, and kept
        "tcp_user_timeout": 10_000,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        **_database.get("OPTIONS", {}),  # of DATABASE_URL
    }
_database["CONN_MAX_AGE"] = 60
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Celery only wakes workers: what is due stands in the database (judging.services.jobs).
CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", default="filesystem://")
EMBEDDED_BROKER = CELERY_BROKER_URL.startswith("filesystem://")
_queue = DATA_DIR / "queue"
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {
        "data_folder_in": str(_folder(_queue)),
        "data_folder_out": str(_queue),
        "control_folder": str(_queue / "control"),
        "polling_interval": 0.2,
    }
    if EMBEDDED_BROKER
    else {
        "socket_connect_timeout": 1,
        "socket_timeout": 1,
        "connect_retries_timeout": 1,  # a hint is not worth a second try
        "visibility_timeout": 3600,
    }
)
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_TASK_TIME_LIMIT = env.int("JOB_TIME_LIMIT_SECONDS", default=3600)
CELERY_TIMEZONE = "UTC"
# Uploads are read from a queue of their own, so that workers can be kept free of them.
CELERY_TASK_DEFAULT_QUEUE = "celery"
UPLOAD_QUEUE = "uploads"
JOB_QUEUES = {"upload": UPLOAD_QUEUE}
JOB_LEASE_SECONDS = env.int("JOB_LEASE_SECONDS", default=20)
SWEEP_SECONDS = env.float("SWEEP_SECONDS", default=3.0)
REST_SECONDS = env.float("REST_SECONDS", default=120.0)
WORKER_SILENT_SECONDS = env.int("WORKER_SILENT_SECONDS", default=30)

# Pools of more lines than one process should hold are built in shards.
SHARDED_FROM_LINES = env.int("SHARDED_FROM_LINES", default=20_000_000)
SHARD_LINES = max(1, env.int("SHARD_LINES", default=2_000_000))
SHARD_WORKERS = env.int("SHARD_WORKERS", default=2)
DASK_SCHEDULER = env.str("DASK_SCHEDULER", default="")
SHARDS_FOLDER = env.str("SHARDS_FOLDER", default="") or str(DATA_DIR / "shards")

# Language models that may predict grades. Keys are not here: see estimation.endpoints.
try:
    MACHINE_ENDPOINTS = declared(env.str("MACHINE_ENDPOINTS", default=""), os.environ)
except EndpointError as error:
    raise ImproperlyConfigured(str(error)) from None

# Files
MEDIA_ROOT = DATA_DIR / "files"
STATIC_ROOT = DATA_DIR / "static"
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "evalsite.static_files.Storage"},
}
FILE_UPLOAD_PERMISSIONS = 0o600
UPLOAD_MAX_BYTES = env.int("UPLOAD_MAX_MB", default=1024) * 2**20
UPLOAD_MAX_UNPACKED_BYTES = env.int("UPLOAD_MAX_UNPACKED_MB", default=8192) * 2**20
MIN_FREE_BYTES = env.int("MIN_FREE_MB", default=100) * 2**20
UPLOAD_CPU_SECONDS = env.float("UPLOAD_CPU_SECONDS", default=900)
UPLOAD_SECONDS = env.float("UPLOAD_SECONDS", default=1800)
UPLOAD_MEMORY_BYTES = env.int("UPLOAD_MEMORY_MB", default=2048) * 2**20
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 2**20
DATA_UPLOAD_MAX_NUMBER_FILES = 1000

# Reports on paper: a program of two or three seconds for each
REPORT_PDF = env.bool("REPORT_PDF", default=True)

# People
AUTH_USER_MODEL = "judging.User"
PASSWORD_HASHERS = [
    "evalsite.hashers.PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
    )
]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "sign-in"
PASSWORD_RESET_TIMEOUT = 7 * 24 * 3600  # an invitation is good for a week

# Who must have a second factor: admins, or organizers too.
SECOND_FACTOR_FOR = env.list("SECOND_FACTOR_FOR", default=[])
if strange := set(SECOND_FACTOR_FOR) - {"admins", "organizers"}:
    raise ImproperlyConfigured(
        f"SECOND_FACTOR_FOR names {', '.join(sorted(strange))}: expected admins, or"
        " admins,organizers"
    )

# Letters: none go out where no mail server is named.
MAIL_ON = bool(env.str("EMAIL_URL", default=""))
try:
    _mail = env.email_url("EMAIL_URL", default="dummymail://")
except (ValueError, ImproperlyConfigured):  # neither names the variable
    _mail = {}
if MAIL_ON and _mail.get("EMAIL_BACKEND") != "django.core.mail.backends.smtp.EmailBackend":
    raise ImproperlyConfigured(
        "EMAIL_URL names no mail server: expected smtp+tls://user:password@host:587, smtp+ssl:// or"
        " smtp://"
    )
EMAIL_BACKEND = str(_mail["EMAIL_BACKEND"])
EMAIL_HOST, EMAIL_PORT = _mail["EMAIL_HOST"] or "", _mail["EMAIL_PORT"] or 25
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail["EMAIL_HOST_USER"], _mail["EMAIL_HOST_PASSWORD"]
EMAIL_USE_TLS, EMAIL_USE_SSL = _mail.get("EMAIL_USE_TLS", False), _mail.get("EMAIL_USE_SSL", False)
EMAIL_TIMEOUT = 20
MAIL_FROM = env.str("MAIL_FROM", default=f"evalsite@{urlsplit(SITE_URL).hostname}")

# Sign-on by an OpenID provider of one's own house
OIDC_ISSUER = env.str("OIDC_ISSUER", default="").rstrip("/")
OIDC_CLIENT_ID = env.str("OIDC_CLIENT_ID", default="")
OIDC_CLIENT_SECRET = env.str("OIDC_CLIENT_SECRET", default="")
OIDC_NAME = env.str("OIDC_NAME", default=urlsplit(OIDC_ISSUER).hostname or "")
OIDC_NEW_ACCOUNTS = env.bool("OIDC_NEW_ACCOUNTS", default=False)
if OIDC_ISSUER and not (OIDC_CLIENT_ID and OIDC_CLIENT_SECRET):
    raise ImproperlyConfigured("OIDC_ISSUER needs OIDC_CLIENT_ID and OIDC_CLIENT_SECRET")

# (user name, password, what it is for): shown by ``manage.py up`` and on the sign-in page, each
# only while it works, that is, on a site where the demo campaign was loaded.
DEMO_PASSWORD = "evalsite-demo"  # noqa: S105
DEMO_SIGN_INS = [
    ("assessor", DEMO_PASSWORD, "judges documents"),
    ("organizer", DEMO_PASSWORD, "designs rounds and watches the ranking"),
    ("admin", DEMO_PASSWORD, "sees everything, and the administration"),
]

# Browser security
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^health/"]
# Browsers keep to HTTPS for as long as they were told, whatever becomes of the certificate, and a
# preload list keeps for years: each step is the operator's to take, after HTTPS has proved itself.
SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", default=0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = env.bool("HSTS_SUBDOMAINS", default=False)
SECURE_HSTS_PRELOAD = env.bool("HSTS_PRELOAD", default=False)
if SECURE_HSTS_SECONDS and not HTTPS:
    raise ImproperlyConfigured("HSTS_SECONDS needs a SITE_URL that is an https address")
SILENCED_SYSTEM_CHECKS = ["security.W004", "security.W005", "security.W021"]  # these ask for HSTS
BEHIND_PROXY = env.bool("BEHIND_PROXY", default=False)
if BEHIND_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_AGE = 14 * 24 * 3600
SESSION_COOKIE_NAME = "evalsite_session"
CSRF_COOKIE_NAME = "evalsite_csrf"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "judging.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PAGINATION_CLASS": "judging.api.pagination.Pages",
    "DEFAULT_SCHEMA_CLASS": "judging.api.schema.Schema",
    "EXCEPTION_HANDLER": "judging.api.errors.exception_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "evalsite",
    "DESCRIPTION": "Campaigns, judgments and estimates of ranking systems.",
    "VERSION": VERSION,
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "COMPONENT_SPLIT_PATCH": False,  # bodies of PATCH say themselves what they require
    "ENUM_NAME_OVERRIDES": {
        "CampaignState": "judging.models.Campaign.State",
        "UploadState": "judging.models.Upload.State",
        "UploadKind": "judging.models.Upload.Kind",
        "BatchState": "judging.models.Batch.State",
        "JobState": "judging.models.Job.State",
        "DecisionKind": "judging.models.Decision.Kind",
        "CodeKind": "judging.models.CrowdLink.CodeKind",
        "GuestState": "judging.payments.STATES",
        "SeenKind": "judging.models.SeenItem.Kind",
        "FactorKind": "judging.models.SecondFactor.Kind",
        "LetterState": "judging.models.Letter.State",
        "NormingState": "judging.models.NormingSession.State",
        "KeyScope": "judging.models.ApiToken.Scope",
        "KeyState": "judging.api.serializers.KEY_STATES",
        "Role": "judging.models.Membership.Role",
        "NoAssignmentReason": "judging.api.serializers.REASONS",
        "RoundState": "estimation.models.Round.State",
        "RoundGoal": "estimation.models.Round.Goal",
        "RoundMethod": "estimation.models.Round.Method",
        "RoundPrior": "estimation.models.Round.Prior",
        "RoundRule": "estimation.models.Round.Rule",
        "RoundStop": "estimation.models.Round.Stop",
        "RoundCosts": "estimation.models.Round.Costs",
        "RoundEstimator": "estimation.models.Round.Estimator",
        "IntervalKind": "estimation.models.Round.Interval",
        "Estimator": "estimation.models.Estimate.Estimator",
        "MachineState": "estimation.models.MachineJudge.State",
        "MachineOutcome": "estimation.models.MachineAnswer.Outcome",
        "ReportName": "estimation.services.report_files.table.PURPOSES",
    },
}

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

LOG_LEVEL = env.str("LOG_LEVEL", default="") or "INFO"
_levels = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
if LOG_LEVEL not in _levels:
    raise ImproperlyConfigured(f"LOG_LEVEL is {LOG_LEVEL!r}: expected one of {', '.join(_levels)}")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "celery": {"level": "WARNING"},
        "django.request": {"level": "ERROR"},
        "kombu.connection": {"level": "ERROR"},  # a filesystem broker has no host name to miss
    },
}
