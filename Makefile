# Works with GNU make 3.81 and newer. Python is always called as `python -m …`, so that a checkout
# may stand at a path with spaces or be moved.

VENV := .venv
RUN := $(VENV)/bin/python
PORT ?= 8501
OUT ?= docs

.PHONY: help setup app test lint format bench screenshots clean
.DEFAULT_GOAL := help

help: ## list what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -e 's/:.*## /	/' | expand -t 14

setup: $(VENV)/app.stamp ## what the app needs, in .venv (PYTHON=… selects the interpreter)

app: $(VENV)/app.stamp ## start the app (PORT=… selects the port)
	@echo "Attention Explorer: http://localhost:$(PORT) (Ctrl-C ends it)"
	@$(RUN) -m streamlit run app.py --server.port $(PORT)

test: $(VENV)/dev.stamp $(VENV)/chromium.stamp lint ## lint, types, unit, page and browser tests
	$(RUN) -m pytest

lint: $(VENV)/dev.stamp ## lint, format and types
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy

format: $(VENV)/dev.stamp ## mend what ruff can mend
	$(RUN) -m ruff check --fix
	$(RUN) -m ruff format

bench: $(VENV)/dev.stamp $(VENV)/chromium.stamp ## ratios against named peers, into benchmarks/README.md
	$(RUN) -m benchmarks --write

screenshots: $(VENV)/dev.stamp $(VENV)/chromium.stamp ## the README's pictures
	$(RUN) -m scripts.screenshot --out "$(OUT)" --page heads --query "layer=2&head=1&query=9" --theme both --full --name heads

clean: ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis test-results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is newer than the file it answers for, so a second run does nothing here.

$(RUN):
	@PYTHON="$(PYTHON)" sh scripts/venv.sh $(VENV)

$(VENV)/app.stamp: requirements.txt | $(RUN)
	$(RUN) -m pip install --disable-pip-version-check --quiet -r requirements.txt
	@touch $@

$(VENV)/dev.stamp: requirements-dev.txt requirements.txt | $(RUN)
	$(RUN) -m pip install --disable-pip-version-check --quiet -r requirements-dev.txt
	@touch $(VENV)/app.stamp $@

$(VENV)/chromium.stamp: $(VENV)/dev.stamp
	$(RUN) -m scripts.browser
	@touch $@
