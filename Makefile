# Two commands do everything from a fresh clone:  make demo   make test
# The virtual environment lives in .venv and is made once; delete it to start over.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
EXTRAS := baselines,export,generate,tune,dask
STAMP  := $(VENV)/.installed
THREADS := NUMBA_CACHE_DIR=$(CURDIR)/.numba_cache
# OpenBLAS has other code for each kind of CPU, which rounds otherwise; frozen results were recorded with that of AVX-512.
BLAS    := $(shell grep -q avx512bw /proc/cpuinfo 2>/dev/null && echo OPENBLAS_CORETYPE=SkylakeX)

.PHONY: demo test setup lint types kernels unit coverage package docs figures bench physics validate-sample toys fits paper \
  capacity profiling random-problems more-events weights eras measurements two-strengths regression smoothing smoothed-fits \
  defaults fuzz faults mutations nightly resources clean bench-gpu test-gpu

demo: setup  ## set up, then the main job on the bundled sample
	$(BIN)/qbdt demo --force

test: setup  ## everything that must pass before a commit lands; kernels are compiled while types are checked
	@$(MAKE) --no-print-directory --jobs 2 types kernels lint docs unit

setup: $(STAMP)

$(STAMP): pyproject.toml
	@echo "== setting up $(VENV) with $$($(PYTHON) --version)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"  # older ones know no dependency groups
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$(EXTRAS)]" --group dev
	@touch $@

lint: setup
	@echo "== ruff"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	@echo "== mypy --strict"
	$(BIN)/mypy

kernels: setup  # once, since the processes of the tests would all compile them at the same time
	@echo "== numba"
	$(THREADS) $(BIN)/python -m tests.compile_kernels

unit: kernels
	@echo "== pytest"
	$(THREADS) $(BLAS) $(BIN)/python -m pytest -n 2 --dist loadgroup

PLAIN := tests/trees tests/training/kernels tests/test_significance.py tests/test_statistics.py
coverage: setup  ## lines and branches that the tests run, kernels as plain Python; fails under the floor of pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group coverage
	$(THREADS) $(BIN)/python -m pytest -n 2 --dist loadgroup --cov --cov-report= --cov-fail-under=0
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist loadgroup $(PLAIN) --cov --cov-append --cov-report=term

package: setup  ## wheel and sdist, each installed and tested without the repository
	$(BIN)/python -m pip install --quiet --disable-pip-version-check nox
	$(BIN)/nox -s package

docs: setup  ## the documentation site into site/; a warning is an error, so no link is broken (--quiet would hide them)
	@echo "== mkdocs"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

figures: setup  ## the figures of README and documentation, from the benchmark's tables and from small runs
	$(THREADS) $(BIN)/python -m docs._figures

bench: setup  ## speed against all peers that are installed (extra bench) in one run; wants an idle machine
	$(BIN)/python -m benchmarks

bench-gpu: setup  ## speed on a GPU, against XGBoost there in the same run
	$(BIN)/python -m benchmarks.gpu

test-gpu: setup  ## hundreds of random trainings on a GPU, each the model of the CPU bit by bit
	$(THREADS) QBDT_GPU_TRAININGS=300 $(BIN)/python -m pytest -n 0 tests/device

physics: setup  ## fit results against those of tuned peers; hours the first time, and P2, P3 need ../shared (SAMPLE=FOLDER for P4)
	mkdir -p qbdt-bench
	cp docs/_figures/physics-results-head.txt qbdt-bench/all.md
	for p in P1 P2 P3 P4; do checks="--check without"; \
	  case $$p in P1) checks="$$checks --check times";; P4) checks="$$checks --check noise";; esac; \
	  $(THREADS) $(BIN)/qbdt bench physics -p $$p $$checks --budget 12 --data ../shared/data $(if $(SAMPLE),--sample $(SAMPLE)) \
	    --out benchmarks/physics-$$p.json --markdown qbdt-bench/$$p.md --force || exit 1; \
	  { printf '\n## %s\n\n' $$p; cat qbdt-bench/$$p.md; } >> qbdt-bench/all.md; done
	mv qbdt-bench/all.md docs/physics-results.md
	$(BIN)/python -m docs._figures summary summary-narrow table

compare-cms: setup  ## qbdt compare on CMS Open Data in ../shared, and its figure in the documentation; some minutes
	$(BIN)/qbdt compare examples/cms_htautau.yaml --data ../shared/data/cms_htautau --out out/compare-cms --budget 2 \
	  --method "qbdt profile" --method "scikit-learn HGB" --method XGBoost --method LightGBM
	cp out/compare-cms/comparison.json docs/_figures/cms-comparison.json
	$(BIN)/python -m docs._figures compare-cms

validate-sample: setup  ## the simulated sample against the paper's events in ../shared
	$(BIN)/python -m validation.sample

toys: setup  ## 2 000 pseudo-experiments: coverage, pulls, median significance; with a control region, coverage of interval and limit
	$(BIN)/python -m validation.toys
	$(BIN)/python -m validation.coverage

fits: setup  ## 500 random measurements fitted here and by pyhf: Z, σ and CLs
	$(BIN)/python -m validation.fits

smoothing: setup  ## smoothing of shifts against 353QH-twice: distance to the truth from nine times the events; the second needs ../shared
	$(THREADS) $(BIN)/python -m validation.smoothing
	$(THREADS) $(BIN)/python -m validation.smoothing --analysis examples/cms_htautau.yaml --data ../shared/data/cms_htautau

smoothed-fits: setup  ## the fit of the paper's own events with and without smoothing; needs ../shared, some minutes
	$(THREADS) $(BIN)/python -m validation.smoothed_fits

paper: setup  ## the paper's fits on its own events, beside the published numbers; needs ../shared
	$(THREADS) $(BIN)/python -m validation.paper

capacity: setup  ## samples of several sizes: trees of F, and how strongly it is regularised (SAMPLE=FOLDER: a large one too)
	$(THREADS) $(BIN)/python -m validation.capacity $(if $(SAMPLE),--sample $(SAMPLE))

profiling: setup  ## what limits the profiled score: bins, trees of the shifts, their coefficients, more events (SAMPLE=FOLDER: a large sample)
	$(THREADS) $(BIN)/python -m validation.profiling $(if $(SAMPLE),--sample $(SAMPLE))

random-problems: setup  ## problems drawn at random, which no choice has looked at, against LightGBM tuned in hindsight; half an hour
	$(THREADS) $(BIN)/python -m validation.random_problems

eras: setup  ## halves of the CMS files in ../shared as two eras, against the fit of the whole
	$(THREADS) $(BIN)/python -m validation.eras

measurements: setup  ## several strengths, a mass and partners on problems with known densities; some minutes
	$(THREADS) $(BIN)/python -m validation.measurements

two-strengths: setup  ## ggH and VBF of the CMS files in ../shared, both measured in 40 cells, against a multi-class XGBoost; hours
	$(THREADS) $(BIN)/python -m validation.two_strengths ../shared/data/cms_htautau

regression: setup  ## the mass of γττ on the bundled sample: resolution and shifts under the sources, against HGB and LightGBM
	$(THREADS) $(BIN)/python -m validation.regression

more-events: setup  ## predictions of what more simulated events give, beside what came out
	$(THREADS) $(BIN)/python -m validation.more_events

weights: setup  ## negative weights in training: smoothed, raw, dropped, without sign
	$(THREADS) $(BIN)/python -m validation.weights

resources: setup  ## memory and time that trainings take, beside their estimates; out of core within a limit; minutes
	$(THREADS) $(BIN)/python -m validation.resources

defaults: setup  ## the search for default settings of the paper's method
	$(THREADS) $(BIN)/qbdt tune validation/defaults.yaml --trials 20 --out out/defaults

KERNELS := tests/trees tests/training/kernels tests/training/paper tests/training/profile tests/test_significance.py
MINUTES ?= 60
fuzz: setup  ## damaged and hostile files of every kind for an hour (MINUTES=600 for ten); ends with 1 on a finding
	$(THREADS) $(BIN)/python -m tests.fuzz --minutes $(MINUTES)

mutations: setup  ## changes of one operator, number or check in statistics, folds and model files that no test notices
	$(THREADS) $(BIN)/python -m validation.mutations

faults: setup  ## a failing file system and SIGKILL at every operation of every command that writes (RECORD=FOLDER: goes on there)
	$(THREADS) $(BIN)/python -m tests.faults $(if $(RECORD),--record $(RECORD))

nightly: setup  ## kernels with every index checked, then as plain Python; 1000 examples of properties; faults, 500 fits against pyhf, an hour of fuzzing
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.numba_cache/bounds $(BIN)/python -m pytest -n 2 --dist loadgroup $(KERNELS)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist loadgroup $(PLAIN)
	$(THREADS) QBDT_EXAMPLES=1000 $(BIN)/python -m pytest -n 2 --dist loadgroup tests/data tests/inference/templates tests/models/export $(PLAIN)
	$(MAKE) faults
	$(MAKE) fits
	$(MAKE) fuzz

clean:
	rm -rf $(VENV) .numba_cache .pytest_cache .mypy_cache .ruff_cache
