# All targets need Python 3.11 or newer with its venv module, and nothing else: they install what they use into .venv.

.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs
CONFIG := configs/sample.yaml
RUN := runs/sample
EXTRAS := documents formats languages serve tensorboard
SENTENCE := Lena is calling her brother because she wants to go to the park.

heading = @printf '\n=== %s\n' '$(1)'

.PHONY: help
help: ## list the targets
	@awk -F ': .*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## install nmt and all it needs into .venv

# Runs again only when one of these two files has changed.
$(STAMP): pyproject.toml .ci/constraints.txt
	@command -v $(PYTHON) > /dev/null || { echo "$(PYTHON) not found: install Python 3.11 or newer, or run make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "nmt needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) -V 2>&1): run make PYTHON=/path/to/python" >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) \
		|| { rm -rf $(VENV); echo "$(PYTHON) cannot create a virtual environment: install its venv module (Debian: python3-venv)" >&2; exit 1; }
	@echo "Installing into $(VENV) (one or two minutes) ..."
	@$(BIN)/pip install --disable-pip-version-check --quiet -c .ci/constraints.txt -e '.[dev]'
	@touch $@

.PHONY: demo
demo: $(STAMP) ## prepare, train, evaluate and translate with the built-in sample data (two minutes)
	$(call heading,Prepare: from sentence pairs to ids)
	@$(BIN)/nmt prepare -c $(CONFIG)
	$(call heading,Train: a model with attention)
	@$(BIN)/nmt train -c $(CONFIG) --resume
	$(call heading,Evaluate: on sentences that were not in the training data)
	@$(BIN)/nmt evaluate $(RUN) --split test > $(RUN)/scores.txt
	@cat $(RUN)/scores.txt
	$(call heading,Translate: $(SENTENCE))
	@$(BIN)/nmt translate --run $(RUN) --attention $(RUN)/attention.png "$(SENTENCE)"
	$(call heading,Results)
	@awk '$$1 == "BLEU" { print "BLEU             " $$2 }' $(RUN)/scores.txt
	@echo "prepared data    data/prepared/sample"
	@echo "run folder       $(RUN)"
	@echo "scores           $(RUN)/scores.txt"
	@echo "attention        $(RUN)/attention.png"
	@echo "next             $(BIN)/nmt translate --run $(RUN) \"How are you?\""

.PHONY: lock
lock: ## write .ci/lock.txt again, after a change of dependencies or of .ci/constraints.txt (needs uv)
	@uv pip compile pyproject.toml $(EXTRAS:%=--extra %) -c .ci/constraints.txt --universal \
		--python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-package torch --quiet \
		-o .ci/lock.txt

.PHONY: audit
audit: ## compare the locked versions with the public lists of known weaknesses (needs pip-audit and a network)
	@pip-audit --requirement .ci/lock.txt --require-hashes --disable-pip

.PHONY: test
test: $(STAMP) ## run the fast tests (two to three minutes)
	@$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

.PHONY: test-slow
test-slow: $(STAMP) ## run the slow tests
	@$(BIN)/pytest -n 2 --dist worksteal -m slow

.PHONY: check
check: $(STAMP) lint types test test-slow ## run the linter, the type checker and all tests

.PHONY: lint
lint: $(STAMP) ## check the style; changes nothing
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

.PHONY: types
types: $(STAMP) ## check the types
	@$(BIN)/mypy

.PHONY: format
format: $(STAMP) ## format the code and fix what the linter can fix
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

.PHONY: docs
docs: $(DOCS_STAMP) ## build the documentation into build/docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet -f .mkdocs.yml
	@echo "open build/docs/index.html; the search needs a server: $(BIN)/python -m http.server -d build/docs"

$(DOCS_STAMP): $(STAMP)
	@$(BIN)/pip install --disable-pip-version-check --quiet -c .ci/constraints.txt -e '.[dev,docs]'
	@touch $@

.PHONY: clean
clean: ## remove the sample's data and run, and all caches; keeps .venv and other runs
	@rm -rf data/prepared/sample $(RUN) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
