# `make demo` and `make test` are all you need; each installs what it needs, once. `make test-all` adds the long tests.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: install demo test test-all bench lint
install: $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/linc-bench run demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest

test-all: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m ""

bench: $(VENV)/.installed-test
	$(BIN)/python -m pytest tests/speed -s --benchmark-columns=min,rounds --benchmark-sort=name --override-ini="addopts=-q" $(if $(UPDATE),--update-figures)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[test]"
	touch $@
