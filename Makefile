# Everything a newcomer needs. Each target builds .venv first; it is rebuilt only when pyproject.toml changes.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
unexport PYTHONDONTWRITEBYTECODE  # the tests start many processes, each of which would compile the package again
# Asked of the installed papers, once something needs them: their names, and the claims of each for a first look.
ASK = $(BIN)/python -c 'import shlex; from moe_theory.core.papers import all_papers; papers = all_papers(); print($(1))'
PAPERS = $(shell $(call ASK,*papers))
FIRST_LOOK = $(shell $(call ASK,shlex.join(glob for paper in papers.values() for glob in paper.first_look)))

.PHONY: verify test thorough fuzz lowest coverage lint figures bench docs verdicts beside orders readme lock clean

verify: $(STAMP)
	$(BIN)/moe-theory verify $(FIRST_LOOK) --reading quick --budget 240 --out runs/verify

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist=loadfile

# What `make test` leaves out because it takes long, such as killed sweeps and clusters.
thorough: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist=loadfile -m thorough

# Five minutes of hostile inputs and five of random steps, others each time; less with ARGS='--seconds 60', the same
# again with ARGS='--seed S' of the seed that was printed.
fuzz: $(STAMP)
	$(BIN)/python tests/hostile/commands.py $(ARGS)
	$(BIN)/python tests/hostile/steps.py $(ARGS)

# The tests with the lowest versions that pyproject.toml allows, in an environment of its own; some with ARGS=tests/core.
# Its Python is the lowest too: newer ones cannot have all of these versions.
LOWEST := runs/lowest
lowest:
	rm -rf $(LOWEST) && python3.11 -m venv $(LOWEST)
	$(LOWEST)/bin/pip install --quiet --disable-pip-version-check packaging
	$(LOWEST)/bin/python .ci/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/pip install --quiet --disable-pip-version-check --constraint $(LOWEST)/constraints.txt --editable '.[dev]'
	$(LOWEST)/bin/python -m pytest -n 2 --dist=loadfile $(ARGS)

# The tests again, twice as long, with the lines that none of them runs; fails below the floor in pyproject.toml.
coverage: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist=loadfile --cov --cov-report=term --cov-report=html:runs/coverage $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	PATH="$(CURDIR)/$(BIN):$$PATH" pyright --verifytypes moe_theory --ignoreexternal --outputjson \
	  | $(BIN)/python .ci/known_types.py 0.95

figures: $(STAMP)
	for name in overview $(PAPERS); do $(BIN)/moe-theory figures $$name --out figures || exit 1; done
	mkdir -p runs && $(BIN)/moe-theory sweep --example > runs/example.toml
	$(BIN)/moe-theory sweep runs/example.toml --out runs/example
	$(BIN)/moe-theory sweep show runs/example --picture figures/sweep/example.svg
	$(BIN)/python docs/readme.py  # the overview as the README shows it, light and dark

# About half an hour on two quiet cores; fewer with ARGS='-k "peers and edge"', compared with ARGS=--benchmark-compare.
bench: $(STAMP)
	mkdir -p runs/bench
	$(BIN)/python -m pytest benchmarks --benchmark-only -s --pinned --benchmark-autosave --benchmark-json=runs/bench/one.json $(ARGS)
	$(BIN)/python -m pytest benchmarks --benchmark-only -s --benchmark-autosave --benchmark-json=runs/bench/all.json $(ARGS)
	$(BIN)/python -m benchmarks.report runs/bench/one.json runs/bench/all.json --out figures/bench

docs: $(STAMP)
	@$(BIN)/python -m sphinx -c docs -b html -d runs/site/doctrees -q -W --keep-going docs/pages runs/site/html
	@echo "site: $(CURDIR)/runs/site/html/index.html"

# Makes the runs that README and site print anew, and the searches of what statements leave free: two to three hours on
# two cores; rerunning resumes. An error that is given is split evenly: a claim's share then is about that of the record.
verdicts: $(STAMP)
	for name in $(PAPERS); do $(BIN)/moe-theory verify $$name --seed 1 --error 0.01 --out runs/verdicts/$$name $(ARGS) || exit 1; done
	$(BIN)/moe-theory challenge $(PAPERS) --seconds 90 --out runs/verdicts $(ARGS)
	$(BIN)/moe-theory record $(PAPERS:%=runs/verdicts/%) runs/verdicts

# What each claim of two papers becomes for Algorithm 1 against a baseline: up to 25 minutes of a core each.
beside: $(STAMP)
	for name in continual edge; do \
	  $(BIN)/moe-theory verify $$name --system examples/repaired.py:repaired --reading orthogonal-signal --budget 25m \
	    --out runs/beside/$$name || exit 1; \
	done
	$(BIN)/python docs/beside.py runs/beside/continual runs/beside/edge

# Which statements hold at which orders of alpha and Gamma: an hour of a core.
orders: $(STAMP)
	$(BIN)/python docs/orders.py

readme: $(STAMP)
	$(BIN)/python docs/readme.py

# The versions that CI installs: those of this environment.
lock: $(STAMP)
	$(BIN)/pip freeze --exclude-editable > .ci/constraints.txt

clean:
	rm -rf .venv runs

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "moe_theory needs Python >= 3.11; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	rm -rf .venv
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	$(BIN)/python -m compileall -qq -j 0 -x /tests/ .venv/lib || true  # on all cores, as pip does not
	touch $@
