# Everything a newcomer needs. Each target builds .venv first; it is rebuilt only when pyproject.toml changes.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
# The claims of the second paper that stand on the runs of its Fig. 3; all of them, under all readings: verify edge.
QUICK_EDGE := 'edge.figure-3.*' 'edge.proposition-4.*' 'edge.exact.*' 'edge.theorem-1.*'

.PHONY: verify test thorough lint figures bench docs verdicts readme clean

verify: $(STAMP)
	$(BIN)/moe-theory verify continual $(QUICK_EDGE) generalization:exact merging:exact --reading quick --out runs/verify

test: $(STAMP)
	$(BIN)/python -m pytest -n 2

# The few tests that `make test` leaves out: killed sweeps and clusters, and the trees of `merging` under another seed.
thorough: $(STAMP)
	$(BIN)/python -m pytest -n 2 -m thorough

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

figures: $(STAMP)
	$(BIN)/moe-theory figures overview --out figures
	$(BIN)/moe-theory figures continual --out figures
	$(BIN)/moe-theory figures edge --out figures
	$(BIN)/moe-theory figures generalization --out figures
	$(BIN)/moe-theory figures merging --out figures
	$(BIN)/moe-theory figures deep --out figures
	$(BIN)/moe-theory verify --self-test --out figures/verify
	mkdir -p runs && $(BIN)/moe-theory sweep --example > runs/example.toml
	$(BIN)/moe-theory sweep runs/example.toml --out runs/example
	$(BIN)/moe-theory sweep show runs/example --picture figures/sweep/example.svg

# About an hour on two quiet cores; fewer with ARGS='-k "peers and continual"', compared with ARGS=--benchmark-compare.
bench: $(STAMP)
	mkdir -p runs/bench
	$(BIN)/python -m pytest benchmarks --benchmark-only -s --pinned --benchmark-autosave --benchmark-json=runs/bench/one.json $(ARGS)
	$(BIN)/python -m pytest benchmarks --benchmark-only -s --benchmark-autosave --benchmark-json=runs/bench/all.json $(ARGS)
	$(BIN)/python -m benchmarks.report runs/bench/one.json runs/bench/all.json --out figures/bench

docs: $(STAMP)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "with its search, which needs a server: $(BIN)/python -m http.server --directory site"
	@echo "site: $(CURDIR)/site/index.html"

PAPERS := continual generalization merging deep edge

# Makes the runs that README and site print anew, about an hour on two cores; they go on where they were stopped.
verdicts: $(STAMP)
	$(BIN)/moe-theory verify continual --out runs/verdicts/continual
	$(BIN)/moe-theory verify generalization --out runs/verdicts/generalization
	$(BIN)/moe-theory verify merging --seed 1 --out runs/verdicts/merging
	$(BIN)/moe-theory verify deep --seed 1 --out runs/verdicts/deep
	$(BIN)/moe-theory verify edge --out runs/verdicts/edge
	$(BIN)/python docs/record.py $(PAPERS:%=runs/verdicts/%)

readme: $(STAMP)
	$(BIN)/python docs/readme.py

clean:
	rm -rf .venv runs site

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "moe_theory needs Python >= 3.11; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	rm -rf .venv
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@
