# make demo   install into .venv, then encode, compare, explain and classify a few sentences
# make test   install into .venv, then run all tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench clean

demo: $(VENV)/base
	$(BIN)/genpool demo

test: $(VENV)/dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/dev
	$(BIN)/python benchmarks/poolings.py
	$(BIN)/genpool bench --write

# The constraints pin every version; torch comes first, from its CPU build where one is offered.
$(VENV)/base: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[train]'
	touch $@

$(VENV)/dev: $(VENV)/base
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV)
