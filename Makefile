# make run        the whole site, with a demo campaign; PORT=8001 HOST=0.0.0.0 move it
# make test       every test, under SQLite and PostgreSQL, with real servers and a real browser
# make test-fast  what needs no server and little time: about a minute and a half on two cores
# make test-core  the statistical core, in a new environment of NumPy, SciPy and pytest alone
# make drills     kills, frozen and absent services, a full disk, slow clients, hostile files: about
#                 45 minutes and a table; DRILL="kills disk" runs some of them, as root also the disk
# make bench      time and memory of all parts beside references measured in the same run: a table;
#                 ONLY=reading,judging runs some of them
# make check      lint, types, import contracts, migrations, deployment settings

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$python; exit; }; done; echo python3)
HOST ?= 127.0.0.1
PORT ?= 8000
VENV := .venv
PY := $(VENV)/bin/python
# One process more than cores: tests of servers mostly wait. At most four, for the memory.
PROCESSES := $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores < 4 ? cores + 1 : 4)))
# Files stay whole, as the tests of one share what it starts; tests/conftest.py sets their order.
PYTEST := $(PY) -m pytest --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder
# No configuration of a running site must reach tests and checks. Their many processes share what
# the first one compiles, and each computes in one thread, as those of a site do (evalsite/settings.py).
CLEAN := env -u PYTHONDONTWRITEBYTECODE -u DATABASE_URL -u CELERY_BROKER_URL -u SITE_URL -u SECRET_KEY -u EMAIL_URL -u OIDC_ISSUER -u SECOND_FACTOR_FOR -u DEBUG -u ALLOWED_HOSTS OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: run test test-fast test-core drills bench check lint types contracts deployable install install-dev services

run: install
	@exec $(PY) manage.py up --host '$(HOST)' --port '$(PORT)'

test: install-dev services
	@status=0; \
	$(CLEAN) $(PYTEST) || status=1; \
	if [ -n "$$EVALSITE_FORBID_SKIPS" ] || bash tests/support/install-services.sh --has-postgres; then \
		echo "The database tests again, under PostgreSQL:"; \
		$(CLEAN) EVALSITE_TEST_DATABASE=postgres $(PYTEST) || status=1; \
	fi; \
	exit $$status

test-fast: install-dev
	@$(CLEAN) $(PYTEST) -m "not slow and not services"

test-core:
	@environment=$$(mktemp -d) && trap 'rm -rf "$$environment"' EXIT && set -e && \
	$(PYTHON) -m venv $$environment && \
	$$environment/bin/pip install --quiet --disable-pip-version-check \
		$$(grep -hoE '^(numpy|scipy|pytest)==[0-9.]+' requirements.txt requirements-dev.txt) && \
	$(CLEAN) $$environment/bin/python -m pytest tests/core

drills: install-dev services
	@$(CLEAN) $(PY) -m tests.at_length $(if $(DRILL),--only $(DRILL))

bench: install-dev services
	@$(CLEAN) $(PY) -m benchmarks $(if $(ONLY),--only $(ONLY)) --json build/benchmarks.json

check: lint types contracts deployable

lint: install-dev
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: install-dev
	$(PY) -m mypy --strict evalsite judging estimation demo

contracts: install-dev
	$(VENV)/bin/lint-imports

deployable: install-dev
	@data=$$(mktemp -d) && trap 'rm -rf "$$data"' EXIT && set -e && \
	$(CLEAN) EVALSITE_DATA=$$data $(PY) manage.py makemigrations --check --dry-run && \
	$(CLEAN) EVALSITE_DATA=$$data SITE_URL=https://evalsite.example \
		SECRET_KEY=$$($(PY) -c 'import secrets; print(secrets.token_urlsafe(64))') \
		$(PY) manage.py check --deploy --fail-level WARNING

install:
	@sh deploy/system-libraries.sh
	@$(call install-from,requirements.txt)

install-dev:
	@$(call install-from,requirements-dev.txt)

services:
	@sh deploy/system-libraries.sh
	@bash tests/support/install-services.sh

# Makes the virtual environment; installs only if the requirements are not those installed last.
define install-from
command -v $(PYTHON) >/dev/null || \
	{ echo "Python is not installed: sudo apt-get install python3 python3-venv" >&2; exit 1; }; \
$(PYTHON) evalsite/management/check_python.py || exit 1; \
$(PY) -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV) || exit 1; \
if ! cat requirements.txt $(1) | cmp -s - $(VENV)/installed-$(1); then \
	echo "Installing $(1) into $(VENV) (once; about a minute)."; \
	$(PY) -m pip install --quiet --disable-pip-version-check -r $(1) || exit 1; \
	cat requirements.txt $(1) > $(VENV)/installed-$(1); \
fi
endef
