# Everything a developer or CI does here, by one word. Each target sets up .venv first if it must.

PYTHON ?= python3
TRACE ?= ../shared/traces/mooncake_conversation.jsonl
BIN := .venv/bin
STAMP := .venv/.installed

.DEFAULT_GOAL := check
.PHONY: setup check test fuzz-parsers lint types docs deep mutation bench gpu cover wheel clean examples engines

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "kvspec needs Python 3.11 or newer; '$(PYTHON)' is not it (try make PYTHON=python3.12 $(MAKECMDGOALS))" >&2; exit 1; }
	test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	$(BIN)/pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

check: setup ## hold the optimized manager to the spec
	$(BIN)/kvspec check

test: setup ## the tests, without those marked deep
	$(BIN)/pytest -n auto

deep: setup ## the tests that take minutes
	$(BIN)/pytest -m deep tests

mutation: setup ## every small change of optimized/ and of spec's pure functions: who sees it (hours)
	$(BIN)/python -m tests.mutation --results .venv/mutation.jsonl --markdown docs/numbers/mutation.md

fuzz-parsers: setup ## whatever is read from outside, with inputs that a coverage-guided fuzzer makes up
	$(BIN)/pip install -qq --disable-pip-version-check -c constraints.txt -e '.[fuzz]'
	$(BIN)/python -m tests.parsers

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo

types: setup
	$(BIN)/mypy
	$(BIN)/mypy tools/*.py

docs: setup ## the book, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

cover: setup ## the tests with branch coverage
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n auto
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

bench: setup ## replay 2,000 requests of the public Mooncake trace, unjudged, on both managers
	@test -f '$(TRACE)' || { echo "bench: no trace at $(TRACE); take FAST25-release/traces/conversation_trace.jsonl from kvcache-ai/Mooncake on GitHub and run: make bench TRACE=FILE" >&2; exit 1; }
	$(BIN)/kvspec replay '$(TRACE)' --target reference --limit 2000 --no-judge
	$(BIN)/kvspec replay '$(TRACE)' --target optimized --limit 2000 --no-judge

gpu: setup ## on a machine with an NVIDIA GPU: every check of the kernels on it, then measure
	$(BIN)/python tools/gpu.py

engines: setup ## the cache managers of vLLM, each version in an environment of its own (no GPU)
	$(BIN)/python tools/engines.py

CPP := examples/cpp_engine
examples: $(CPP)/build/engine ## the example engine in C++

$(CPP)/build/engine: $(wildcard $(CPP)/*.cpp $(CPP)/*.hpp)
	@command -v $(CXX) > /dev/null || { echo "examples: no C++ compiler '$(CXX)'; install g++, or name one: make examples CXX=clang++" >&2; exit 1; }
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -O2 -Wall -Wextra -o $@ $(CPP)/main.cpp $(CPP)/cache.cpp

wheel: setup ## sdist and wheel, and the wheel's files compared with the tree
	rm -rf dist
	$(BIN)/python -m build --outdir dist . > .venv/build.log 2>&1 || { cat .venv/build.log; exit 1; }
	$(BIN)/python tools/wheel_files.py dist/*.whl

clean: ## what the targets above made, but for .venv
	rm -rf build dist $(CPP)/build site docs/generated .coverage* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find spec reference optimized kernels kvspec tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
