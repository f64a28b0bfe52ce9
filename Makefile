# `make help` lists the targets. Everything lives in .venv; nothing outside the checkout is touched.
PYTHON ?= python3
VENV ?= .venv
PYTEST_FLAGS ?= -n 2 --dist worksteal

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
NATIVE := $(shell find native -type f)
CPP := $(shell find native examples -name "*.cpp" -o -name "*.hpp" -o -name "*.h" | sort)
PY := src tests benchmarks examples tools

.DEFAULT_GOAL := help
.PHONY: help demo test check format lint types web pages bench fuzz clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

demo: $(VENV)/.demo ## profile a small model: the first screen, and build/convs.html
	$(BIN)/etmem profile examples/convs.pte --output build/convs.etmem --html build/convs.html
	@echo
	@echo "Open build/convs.html in a browser. Next: $(BIN)/etmem report build/convs.etmem --full"

test: $(VENV)/.test ## run every test
	$(BIN)/python -m pytest $(PYTEST_FLAGS)

check: lint types pages test ## format, lint, types, then every test

format: $(VENV)/.test ## rewrite the sources as the formatters want them
	$(BIN)/ruff format $(PY)
	$(BIN)/ruff check --fix $(PY)
	$(BIN)/clang-format -i $(CPP)

lint: $(VENV)/.test ## formatters and linters, changing nothing
	$(BIN)/ruff format --check $(PY)
	$(BIN)/ruff check $(PY)
	$(BIN)/clang-format --dry-run -Werror $(CPP)

types: $(VENV)/.test ## mypy --strict
	$(BIN)/mypy

web: web/node_modules/.package-lock.json ## build the HTML report's script and style
	npm --prefix web run build

pages: web/node_modules/.package-lock.json ## check that the package carries what web/ builds
	npm --prefix web run check

bench: $(VENV)/.bench ## figures beside memray's, in one run
	$(BIN)/python benchmarks/run.py

fuzz: $(VENV)/.test ## fuzz the readers for an hour each; finds go to build/fuzz
	$(PIP) install --editable '.[fuzz]'
	mkdir -p build/fuzz
	for target in report intervals; do \
	  $(BIN)/python -m tests.fuzz.fuzz $$target -max_total_time=3600 -max_len=150000 -artifact_prefix=build/fuzz/ || exit 1; \
	done

clean: ## remove what the other targets made
	rm -rf $(VENV) build dist src/etmem/_native .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis

# An editable install: Python edits are seen at once, native ones when a stamp is older than them.
$(VENV)/.install: pyproject.toml CMakeLists.txt native/CMakeLists.txt $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	mkdir -p build
	$(PIP) install --editable .
	touch $@

# The demo needs ExecuTorch's headers and libraries, not the exporter's dependencies (torchao, coremltools...).
$(VENV)/.demo: $(VENV)/.install
	$(PIP) install --no-deps executorch==1.5.1
	touch $@

# torch alone and first: another package's wish for a newer one would change the exported programs.
$(VENV)/.test: $(VENV)/.install
	$(PIP) install torch==2.13.0
	$(PIP) install --editable '.[test,lint]'
	touch $@

web/node_modules/.package-lock.json: web/package-lock.json
	npm --prefix web ci --no-audit --no-fund --loglevel=error
	touch $@

$(VENV)/.bench: $(VENV)/.test
	$(PIP) install --editable '.[bench]'
	touch $@
