# Two commands do everything from a fresh clone:  make demo   make test
# The virtual environment lives in .venv and is made once; delete it to start over.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
EXTRAS := test,baselines,export,generate,dask
STAMP  := $(VENV)/.installed
THREADS := NUMBA_CACHE_DIR=$(CURDIR)/.numba_cache

.PHONY: demo test setup lint types unit bench validate-sample toys paper clean

demo: setup  ## set up, then the main job on the bundled sample
	$(BIN)/qbdt demo

test: lint types unit  ## everything that must pass before a commit lands

setup: $(STAMP)

$(STAMP): pyproject.toml
	@echo "== setting up $(VENV) with $$($(PYTHON) --version)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$(EXTRAS)]"
	@touch $@

lint: setup
	@echo "== ruff"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	@echo "== mypy --strict"
	$(BIN)/mypy

unit: setup
	@echo "== pytest"
	$(THREADS) $(BIN)/python -m pytest -n 2 --dist loadgroup

bench: setup  ## speed against XGBoost, LightGBM and scikit-learn in one run; wants an idle machine
	$(BIN)/python -m benchmarks

validate-sample: setup  ## the simulated sample against the paper's events in ../shared
	$(BIN)/python -m validation.sample

toys: setup  ## 2 000 pseudo-experiments: coverage, pulls, median significance
	$(BIN)/python -m validation.toys

paper: setup  ## the paper's fits on its own events, beside the published numbers; needs ../shared
	$(THREADS) $(BIN)/python -m validation.paper

clean:
	rm -rf $(VENV) .numba_cache .pytest_cache .mypy_cache .ruff_cache
