PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test lint docs format clean

setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: setup
	$(BIN)/dssgnn demo

test: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

lint: setup
	$(BIN)/ruff format --check src tests examples
	$(BIN)/ruff check src tests examples
	$(BIN)/mypy

docs: setup
	$(BIN)/dssgnn bench render

format: setup
	$(BIN)/ruff format src tests examples
	$(BIN)/ruff check --fix src tests examples

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist demo-output
