# Every target sets up what it needs. Nothing but python3.11, git and make has to be there before.
PYTHON ?= python3.11
VENV := .venv
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export DO_NOT_TRACK := 1
export DVC_NO_ANALYTICS := 1
export HF_HUB_DISABLE_TELEMETRY := 1
export PREFECT_SERVER_ANALYTICS_ENABLED := false

.DEFAULT_GOAL := help
.PHONY: help install cluster hashes sbom crate-venv reproduce paper paper-mirror test test-slow test-faults lint docs

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:[^#]*## /\t/' | expand -t 16

# With `-P` Python does not import from the working folder, where a folder of data can have the name of a library.
PIP = $(VENV)/bin/python -P -m pip install --quiet --disable-pip-version-check
HASHED = $(PIP) --require-hashes --no-deps --no-build-isolation

install: $(VENV)/.installed ## make .venv from the locks, every file by its sha256

# hashes/ is for Linux x86-64; elsewhere the versions alone are pinned. One build of torch is taken: pip finds the CPU
# build where its settings name PyTorch's own index, else the public index has one that needs CUDA's libraries.
# DVC keeps pickles of its own in a folder that any user of a machine may write to, unless it is told another.
# requirements-train.lock has what training needs besides: a pin in requirements.lock would make every stage run again.
$(VENV)/.installed: requirements.lock requirements-train.lock pyproject.toml \
		$(patsubst %,hashes/%.txt,build packages train torch-cpu torch-cuda)
	@echo "installing the packages of requirements.lock in $(VENV), 2.7 GB: some minutes, once"
	@$(PYTHON) -P -m venv $(VENV)
ifeq ($(shell uname -sm),Linux x86_64)
	@$(HASHED) -r hashes/build.txt
	@$(HASHED) -r hashes/packages.txt
	@$(HASHED) -r hashes/train.txt
	@$(HASHED) -r hashes/torch-cpu.txt 2>$(VENV)/torch-cpu.log || $(HASHED) -r hashes/torch-cuda.txt
else
	@$(PIP) -r requirements.lock -r requirements-train.lock
endif
	@$(PIP) --no-deps --no-build-isolation -e .
	@mkdir -p -m 700 $(VENV)/dvc-site
	@$(VENV)/bin/dvc config --local core.site_cache_dir "$(CURDIR)/$(VENV)/dvc-site"
	@touch $@

cluster: install ## add what runs on a cluster need: dask-jobqueue, and ssh for DVC (docs/cluster.md)
	@$(HASHED) -r hashes/cluster.txt

hashes: install ## write hashes/ from requirements.lock and the public index
	@python .ci/hash_requirements.py

sbom: install ## write sbom.json, and sbom-NAME.json for each further environment: packages, licences, hashes (CycloneDX)
	@python .ci/sbom.py > sbom.json
	@for one in crate docs; do if [ -d .venv-$$one ]; then python .ci/sbom.py .venv-$$one > sbom-$$one.json; fi; done

reproduce: install ## set up, run the quick suite, print its table
	@sentfold run --suite quick

paper: install ## set up, run the paper suite from the Hugging Face hub and official archives
	@sentfold run --suite paper

paper-mirror: install ## the same from the folder SENTFOLD_MIRROR
	@sentfold run --suite paper-mirror

# Environments of their own, whose pins do not go with those of requirements.lock, or need not.
.venv-%/.installed: VENV = .venv-$*
.venv-%/.installed: requirements-%.lock hashes/%.txt
	@echo "installing the packages of $< in $(VENV)"
	@$(PYTHON) -P -m venv $(VENV)
ifeq ($(shell uname -sm),Linux x86_64)
	@$(HASHED) -r hashes/$*.txt
else
	@$(PIP) -r $<
endif
	@touch $@

crate-venv: .venv-crate/.installed ## make .venv-crate, with the validator of RO-Crates, whose pins do not go with ours

docs: .venv-docs/.installed ## write the site of the documentation to site/; a broken link is an error
	@.venv-docs/bin/python -P -m sphinx --quiet --fail-on-warning --keep-going --fresh-env -c docs . site
	@cp site/README.html site/index.html
	@echo "the site is in site/: open site/index.html"

lint: install ## ruff and mypy
	@ruff check .
	@ruff format --check .
	@mypy

test: lint ## set up, lint, type-check, run the default tests
	@python -P -m pytest -q -n 2 --dist loadfile

# Many of these wait for servers and schedules, so three at a time keep two cores busy.
test-slow: install crate-venv ## the tests marked slow, but for the repeated faults
	@python -P -m pytest -q -n 3 --dist loadfile -m 'slow and not hours'

test-faults: install ## every fault, twenty kills of each kind: hours
	@python -P -m pytest -q -m 'slow or not slow' tests/faults
