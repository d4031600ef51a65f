# The two commands a user needs are `make run` and `make test`; both set up what is missing first.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# the first Python 3.11 among what people call it; PYTHON=/path/to/python3.11 overrides
PYTHON ?= $(shell for p in python3.11 python3 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null && { command -v "$$p"; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python -P
VAR := $(or $(PHASEGATE_VAR),var)
MODEL := $(or $(PHASEGATE_MODEL_PATH),$(VAR)/models/SmolLM2-135M-Instruct)
# installed again when what is asked for, or the folder it was made for, changes
STAMP := $(VENV)/.installed-$(shell cat requirements.txt requirements-dev.txt pyproject.toml <(pwd) | cksum | tr -d ' ')

# parallel tests: a worker a core up to four, a file to one worker, which keeps what its tests share
MARKED := not browser and not server
TESTS := tests
WORKERS := -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder

.PHONY: help model setup run test tests browser-test lint types check schema messages

help:
	@echo "make run      set up what is missing, start everything, print the address (PORT=8001 changes the port)"
	@echo "make test     set up what is missing, run the tests; the browser tests too where a Chromium is found"
	@echo "make setup    only set up: environment, packages, default model, translations, assets"
	@echo "make check    lint, types, import contracts, migrations, API schema"

$(STAMP):
	@if [ -z "$(PYTHON)" ]; then \
		echo "PhaseGate needs Python 3.11, which was not found. Install it, or name it: make setup PYTHON=/path/to/python3.11" >&2; \
		exit 1; fi
	@echo "setup: environment in $(VENV) with $$($(PYTHON) --version)"
	@# an environment made in another folder has scripts that point there
	@if [ "$$(cat $(VENV)/.place 2>/dev/null)" != "$$(pwd)" ]; then \
		$(PYTHON) -m venv --clear $(VENV) || { \
			echo "The environment could not be made; on Debian and Ubuntu install python3.11-venv." >&2; exit 1; }; \
		pwd > $(VENV)/.place; fi
	@echo "setup: installing packages, some 1.5 GB with PyTorch; this takes a few minutes once"
	@$(BIN)/python -m pip install --disable-pip-version-check --no-compile -r requirements-dev.txt | grep --line-buffered -vE '^(Requirement already|Looking in)'; \
		test $${PIPESTATUS[0]} -eq 0 || { echo "The packages could not be installed; see the lines above." >&2; exit 1; }
	@touch $@

model: $(STAMP)
	@$(PY) scripts/fetch_model.py --folder "$(MODEL)" --downloads "$(VAR)/downloads"

setup: model
	@$(PY) manage.py compile_catalogues
	@$(PY) manage.py build_assets

# `up` itself compiles and builds what changed, so a start need not wait for two more processes
run: model
	@exec $(PY) manage.py up --end-with-parent

test: setup
	@$(MAKE) --no-print-directory tests
	@if command -v chromium chromium-browser google-chrome >/dev/null || [ -n "$$PHASEGATE_REQUIRE_BROWSER" ]; then \
		$(MAKE) --no-print-directory browser-test; \
	else echo "No Chromium was found, so the browser tests were left out."; fi

# one thread a worker: models of this size only lose by more, and the workers fill the processor
tests: $(STAMP)
	OMP_NUM_THREADS=1 $(PY) -m pytest $(WORKERS) $(TESTS) -m "$(MARKED)"

browser-test:
	$(PY) -m pytest tests -m browser

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(STAMP)
	$(BIN)/mypy -p phasegate -p pocs -p inference -p benchmarks

schema: $(STAMP)
	DJANGO_SETTINGS_MODULE=phasegate.settings.test $(PY) manage.py makemigrations --check --dry-run
	DJANGO_SETTINGS_MODULE=phasegate.settings.test $(PY) manage.py spectacular --fail-on-warn --validate --file /dev/null

# needs gettext
messages: $(STAMP)
	$(PY) scripts/messages.py check

check: lint types schema
