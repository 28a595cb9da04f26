# The commands of the project. `make` alone lists them.
# State is kept in .headgate/ (HEADGATE_HOME=… for another folder), packages in .venv/.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help jars provisions venv venv-dev chromium prerequisites demo up down status manage clean test test-deep test-durations screenshots lint format lock sbom image-test

# The lock is made for 3.11; the newest others are tried after it.
ifndef PYTHON
PYTHON := $(shell for p in python3.11 python3 python3.12 python3.13 python3.14; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v "$$p" && break; done)
endif
BIN := .venv/bin
STACK := $(BIN)/python -m controlplane.embedded
ARGS ?=
UV := uv==0.13.8

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

prerequisites:
	@test -n "$(PYTHON)" || { echo "Headgate needs Python 3.11 or newer, but there is none on the PATH." \
		"Install it with: sudo apt-get install python3.11 python3.11-venv (macOS: brew install python@3.11)" >&2; exit 1; }
	@"$(PYTHON)" -I controlplane/embedded/prerequisites.py

# $(call install,LOCK): brings .venv to the lock unless it has it already. A copy of the lock says what it has.
# The development lock holds everything of the other one.
define install
	@test -x $(BIN)/python && $(BIN)/python -m pip --version >/dev/null 2>&1 || { \
		echo "Creating .venv with $(PYTHON)"; rm -rf .venv; "$(PYTHON)" -m venv .venv || { rm -rf .venv; \
		echo "Could not create .venv. On Debian and Ubuntu: sudo apt-get install python3-venv" >&2; exit 1; }; }
	@cmp -s $(1) .venv/$(1) || { echo "Installing the packages of $(1) into .venv (a few minutes the first time)" && \
		rm -f .venv/requirements*.txt && \
		DIST_EXTRA_CONFIG="$(CURDIR)/tools/wheels.cfg" $(BIN)/python -m pip install --quiet \
			--disable-pip-version-check --use-pep517 --require-hashes -r $(1) && \
		cp requirements.txt .venv/requirements.txt && cp $(1) .venv/$(1); }
endef

venv: prerequisites
	$(call install,requirements.txt)

venv-dev: prerequisites
	$(call install,requirements-dev.txt)

up: venv ## start the stack, or find the one that runs
	@$(STACK) up

down: ## stop it; its data stays
	@test ! -x $(BIN)/python || $(STACK) down

status: ## what runs; exit code 3 when not everything does
	@test -x $(BIN)/python || { echo "Nothing runs: the stack was never started here."; exit 3; }
	@$(STACK) status

manage: ## a command of manage.py on the stack that runs (ARGS="ensure_login --username ann --team web")
	@test -x $(BIN)/python || { echo "Nothing runs: the stack was never started here."; exit 3; }
	@$(STACK) manage $(ARGS)

clean: ## stop it and delete its data; downloads stay
	@test ! -x $(BIN)/python || $(STACK) clean

demo: venv ## start the stack, load and ingest real data, show the result (ARGS="--exit --json FILE")
	@exec $(STACK) demo $(ARGS)

# Every worker has a stack of its own (2 GB with its applications). With two, a quarter of two processors is idle: tests
# wait for brokers and pages. In the deep lanes applications of a third would start so slowly that some tests do not meet
# their deadlines. Compiled code is kept, also where the environment says otherwise: some thousand processes are started,
# and each would compile the project again. Memory comes in pages of 2 MiB where the system has them: a virtual machine
# that gives free memory back to its host waits 10 to 80 microseconds for each small page when it needs it again.
PYTEST = PYTHONDONTWRITEBYTECODE= PYTHONMALLOC=malloc \
	GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1 $(BIN)/python -m pytest
QUICK = -n 3 -m "not deep and not cluster"
DEEP = -n 3 --spare-workers 1 -m "deep or cluster" --durations 25 --durations-min 5

test: venv-dev jars chromium ## lint and the tests that prove a change; installs what it lacks (12 to 22 minutes)
	$(PYTEST) $(QUICK) $(ARGS)

test-deep: venv-dev provisions chromium ## the rest: kills, storms, every page, a Spark cluster (30 to 50 minutes)
	$(PYTEST) $(DEEP) $(ARGS)

test-durations: venv-dev provisions chromium ## run both, and keep how long each file takes: the longest go first
	$(PYTEST) $(QUICK) --record-durations
	$(PYTEST) $(DEEP) --record-durations

# In the background: they come while other things are done, and who needs them waits for them.
jars: venv-dev
	@$(BIN)/python -m controlplane.embedded jars &

image-test: venv-dev ## run the Dockerfile's steps in a Debian system and start web there; needs root and debootstrap
	$(BIN)/python -m tests.support.debian_image $(ARGS)

provisions: jars
	@$(BIN)/python -m tests.support.provisions &

screenshots: venv-dev chromium ## every page, light and dark, wide and narrow, into .headgate/screenshots
	rm -rf .headgate/screenshots && mkdir -p .headgate/screenshots
	HEADGATE_SCREENSHOTS=.headgate/screenshots $(BIN)/python -m pytest tests/browser/test_every_page.py

lint: venv-dev ## format, style, types and layers
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .
	DATABASE_URL=postgresql:///none HEADGATE_SECRET_KEY=none $(BIN)/python -m mypy
	$(BIN)/lint-imports

format: venv-dev ## rewrite the code in the house style
	$(BIN)/python -m ruff format .
	$(BIN)/python -m ruff check --fix .

# The browser tests drive an installed Chromium: the one without windows where there is one, which works a quarter less.
chromium:
	@if ! command -v chromium-headless-shell >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing Chromium for the browser tests" && apt-get update -qq && \
		for name in chromium-headless-shell chromium; do \
			DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$name >/dev/null && break; \
		done; \
	fi
	@for name in chromium-headless-shell chromium chromium-browser google-chrome; do \
		command -v $$name && break; done >/dev/null || { \
		echo "The browser tests need Chromium." \
			"Install it with: sudo apt-get install chromium-headless-shell (macOS: brew install chromium)" >&2; exit 1; }

sbom: venv-dev ## list what is shipped, with licences, in sbom.json (ARGS="--root DIR" for an unpacked image)
	$(BIN)/python -m tools.sbom $(ARGS)

lock: prerequisites ## resolve the dependencies into both requirements files (ARGS=--upgrade for newer ones)
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && "$(PYTHON)" -m venv "$$folder" && \
	"$$folder/bin/pip" install --quiet --disable-pip-version-check $(UV) && \
	compile() { UV_PYTHON_DOWNLOADS=never "$$folder/bin/uv" pip compile --generate-hashes --no-emit-index-url \
		--no-emit-find-links --python-version 3.11 -q pyproject.toml --custom-compile-command "make lock" $(ARGS) "$$@"; } && \
	compile --extra server --group demo -o requirements.txt && \
	compile --extra server --group demo --group dev -c requirements.txt -o requirements-dev.txt
