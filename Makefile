PYTHON ?= python3
BIN := .venv/bin

WORKERS ?= 2
CALIBRATION := $(BIN)/dssgnn bench calibration

.PHONY: setup demo test lint docs calibration format clean

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

# Everything in docs/calibration*.md and docs/chaos_axis.md. What results/ holds already, on this device, is not run again.
calibration: setup
	$(CALIBRATION) --methods all --variants all --workers $(WORKERS)
	$(CALIBRATION) --methods dss-gnn,gcn-res,tfe-gnn --variants best,best-p0,twin-p0,twin-p0-penalty,tuned --seeds 3 --workers $(WORKERS)
	$(CALIBRATION) --methods bernnet,chebnet,gcn-res --variants paper,earlier --datasets texas,cornell,wisconsin --seeds 3 --workers $(WORKERS)
	$(CALIBRATION) --methods dss-gnn,tfe-gnn --variants best,best-p0,twin-p0,twin-p0-penalty,tuned --datasets texas --seeds 10 --workers $(WORKERS)
	$(CALIBRATION) --methods bernnet --variants paper --datasets texas --seeds 10
	$(CALIBRATION) --alone --methods dss-gnn --variants best,best-p0 --datasets texas,cornell,wisconsin --seeds 3 --workers $(WORKERS)
	$(CALIBRATION) --ablations all --workers $(WORKERS)
	$(CALIBRATION) --ablations start-joint,start-size --seeds 3 --workers $(WORKERS)
	-$(CALIBRATION) --methods dss-gnn --variants published --timed --workers $(WORKERS)
	-$(CALIBRATION) --methods dss-gnn --variants best --timed --workers $(WORKERS)
	$(CALIBRATION) --methods dss-gnn --variants best --curves reliability
	$(CALIBRATION) --methods gcn,deep-ensemble --variants paper --curves reliability
	$(CALIBRATION) --methods dss-gnn --variants best,published --datasets minesweeper --curves curvature
	$(BIN)/dssgnn bench render

format: setup
	$(BIN)/ruff format src tests examples
	$(BIN)/ruff check --fix src tests examples

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist demo-output
