# The commands of this house. `make demo` and `make test` work first on a fresh machine; neither needs root or the other.
PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
BIN := $(VENV)/bin

.PHONY: demo test lint bench campaign soak regulation lock system-deps clean

demo: $(VENV)/.run
	$(BIN)/cutcard demo $(ARGS)

test: $(VENV)/.dev
	$(BIN)/pytest -n $(WORKERS) -m "not soak" $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.run
	$(BIN)/cutcard bench $(ARGS)

# 300 shoes under faults, judged; with the cutcard of another Python in ARGS the same on that.
campaign: $(VENV)/.run
	$(BIN)/python -m tests.campaign $(ARGS)

soak: $(VENV)/.dev
	$(BIN)/pytest -m soak --timeout 3600 $(ARGS)

# docs/regulation.md from the table of rules and the tests' markers.
regulation: $(VENV)/.dev
	$(BIN)/python -m tests.regulation

# Debian packages that some tests need (root): the real libusb on simulated devices, and Wireshark's own reading of captures.
SYSTEM_PACKAGES := umockdev libusb-1.0-0 tshark
system-deps:
	@command -v dpkg-query >/dev/null || { echo "make system-deps knows Debian only; what it would install: $(SYSTEM_PACKAGES)"; exit 1; }; \
	missing=""; \
	for package in $(SYSTEM_PACKAGES); do \
	  dpkg-query -W -f '$${db:Status-Abbrev}' $$package 2>/dev/null | grep -q '^ii' || missing="$$missing $$package"; \
	done; \
	[ -n "$$missing" ] || exit 0; \
	[ "$$(id -u)" = 0 ] || { echo "these Debian packages are missing:$$missing; install them as root: sudo make system-deps"; exit 1; }; \
	export DEBIAN_FRONTEND=noninteractive; \
	install() { apt-get install -qq -y --no-install-recommends $$missing >/dev/null; }; \
	install 2>/dev/null || { apt-get update -qq && install; } \
	  || { echo "apt-get could not install:$$missing; what it says is above"; exit 1; }

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "cutcard needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0])'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "the package python3-venv is missing: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.run: requirements/run.txt pyproject.toml | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/dev.txt
	@touch $@

# One resolution: the dev lock first, the run lock from its versions. Needs uv (`pip install uv`). The dev lock is
# installed without another resolution, since [tool.uv] leaves out what smpmgr would bring along.
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra dev pyproject.toml requirements/build.in -o requirements/dev.txt
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -c requirements/dev.txt pyproject.toml requirements/build.in -o requirements/run.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
