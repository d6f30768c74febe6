# What a newcomer needs: `make help` lists it. Each target builds .venv first, again only when pyproject.toml changes.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
unexport PYTHONDONTWRITEBYTECODE  # the tests start many processes, each of which would compile the package again
# The names of the installed papers, once something needs them.
PAPERS = $(shell $(BIN)/python -c 'from moe_theory.core.papers import all_papers; print(*all_papers())')

.PHONY: help verify test thorough lint docs figures bench readme verdicts

help:  ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## (.*)/make \1\t\2/' | expand -t 16

verify: $(STAMP)  ## test some statements of every paper, and write a report
	$(BIN)/moe-theory verify --out runs/verify

test: $(STAMP)  ## run the tests
	$(BIN)/python -m pytest -n 2 --dist=loadfile

thorough: $(STAMP)  ## run the long tests: killed processes, clusters, second seeds, the wheel
	$(BIN)/python -m pytest -n 2 --dist=loadfile -m thorough

lint: $(STAMP)  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	PATH="$(CURDIR)/$(BIN):$$PATH" pyright --verifytypes moe_theory --ignoreexternal --outputjson \
	  | $(BIN)/python .ci/known_types.py 0.95

docs: $(STAMP)  ## build the site
	@$(BIN)/python -m sphinx -c docs -b html -d runs/site/doctrees -q -W --keep-going docs/pages runs/site/html
	@echo "site: $(CURDIR)/runs/site/html/index.html"

figures: $(STAMP)  ## draw all figures again
	for name in overview $(PAPERS); do $(BIN)/moe-theory figures $$name --out figures || exit 1; done
	mkdir -p runs && $(BIN)/moe-theory sweep --example > runs/example.toml
	$(BIN)/moe-theory sweep runs/example.toml --out runs/example
	$(BIN)/moe-theory sweep show runs/example --picture figures/sweep/example.svg
	$(BIN)/python docs/readme.py  # the overview as the README shows it, light and dark

bench: $(STAMP)  ## measure speed, half an hour; fewer with ARGS='-k "peers and edge"'
	mkdir -p runs/bench
	$(BIN)/python -m pytest benchmarks --benchmark-only -s --pinned --benchmark-autosave --benchmark-json=runs/bench/one.json $(ARGS)
	$(BIN)/python -m pytest benchmarks --benchmark-only -s --benchmark-autosave --benchmark-json=runs/bench/all.json $(ARGS)
	$(BIN)/python -m benchmarks.report runs/bench/one.json runs/bench/all.json --out figures/bench

readme: $(STAMP)  ## fill in the generated parts of README and paper
	$(BIN)/python docs/readme.py

# Rerunning resumes. An error that is given is split evenly: a claim's share then is about that of the record.
verdicts: $(STAMP)  ## test all statements and search all free parameters again, two to three hours
	for name in $(PAPERS); do $(BIN)/moe-theory verify $$name --seed 1 --error 0.01 --out runs/verdicts/$$name $(ARGS) || exit 1; done
	$(BIN)/moe-theory challenge $(PAPERS) --seconds 90 --out runs/verdicts $(ARGS)
	$(BIN)/moe-theory record $(PAPERS:%=runs/verdicts/%) runs/verdicts

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "moe_theory needs Python >= 3.11; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	rm -rf .venv
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	$(BIN)/python -m compileall -qq -j 0 -x /tests/ .venv/lib || true  # on all cores, as pip does not
	touch $@
