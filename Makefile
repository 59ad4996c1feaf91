# `make demo` and `make test` need Python 3.11 or newer, with venv, and nothing else: what they use is installed into .venv.

.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CONFIG := configs/sample.yaml
RUN := runs/sample
SENTENCE := Lena is calling her brother because she wants to go to the park.

heading = @printf '\n=== %s\n' '$(1)'

.PHONY: help
help: ## say what can be made
	@awk -F ': .*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## install everything into .venv

# A second call has nothing to do until one of these two files changes.
$(STAMP): pyproject.toml .ci/constraints.txt
	@command -v $(PYTHON) > /dev/null || { echo "$(PYTHON) is not there: install Python 3.11 or newer, or say make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "nmt needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1): say make PYTHON=/path/to/python" >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) \
		|| { rm -rf $(VENV); echo "$(PYTHON) cannot make a virtual environment: install its venv module (Debian: python3-venv)" >&2; exit 1; }
	@echo "Installing into $(VENV); this takes a minute or two ..."
	@$(BIN)/pip install --disable-pip-version-check --quiet -c .ci/constraints.txt -e '.[dev]'
	@touch $@

.PHONY: demo
demo: $(STAMP) ## prepare, train, evaluate and translate with the embedded sample
	$(call heading,Prepare: sentence pairs to ids)
	@$(BIN)/nmt prepare -c $(CONFIG)
	$(call heading,Train: a model with attention)
	@$(BIN)/nmt train -c $(CONFIG) --resume
	$(call heading,Evaluate: sentences that it has never seen)
	@$(BIN)/nmt evaluate $(RUN) --split test > $(RUN)/scores.txt
	@cat $(RUN)/scores.txt
	$(call heading,Translate: $(SENTENCE))
	@$(BIN)/nmt translate --run $(RUN) --attention $(RUN)/attention.png "$(SENTENCE)"
	$(call heading,The score and where things are)
	@awk '$$1 == "BLEU" { print "BLEU             " $$2 }' $(RUN)/scores.txt
	@echo "prepared data    data/prepared/sample"
	@echo "the run          $(RUN)"
	@echo "its scores       $(RUN)/scores.txt"
	@echo "its attention    $(RUN)/attention.png"
	@echo "more sentences   $(BIN)/nmt translate --run $(RUN) \"How are you?\""

.PHONY: test
test: $(STAMP) ## run the tests
	@$(BIN)/pytest -n 2

.PHONY: check
check: $(STAMP) lint types test ## lint, check types, run the tests

.PHONY: lint
lint: $(STAMP) ## look for faults of style, without changing anything
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

.PHONY: types
types: $(STAMP) ## check the types
	@$(BIN)/mypy

.PHONY: format
format: $(STAMP) ## put the code into its form, and mend what can be mended
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

.PHONY: clean
clean: ## remove the sample's data and run, and caches; keep .venv and other runs
	@rm -rf data/prepared/sample $(RUN) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
