# SPDX-License-Identifier: Apache-2.0
#
# A thin front door: each target is a few commands that can also be typed by hand.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PREFIX ?= /usr/local
# Where `make install` puts files before they move to PREFIX; empty on a user's own machine.
DESTDIR ?=
export DESTDIR

python := .venv/bin/python
# What has passed with the same inputs is kept and not run again; FRESH=1 runs everything.
kept := $(python) scripts/kept.py
step := $(kept) step
release := --build "--with-sim release"
# As the presets have it, whose own filter makes ctest (3.25) ignore -LE.
ctest := ctest --test-dir build -j 2 --output-on-failure --no-tests=error
# What tests of the library need not: pages, hardware, simulator. Tests on the simulator need both.
host := --without pages,front-door,lint,proofs,rtl-tests,hardware,simulator,tools-tests
simulated := --without pages,front-door,lint,proofs,rtl-tests,tools-tests
# Blocks whose simulation is part of `make test`; the others' of `make check`.
rtl_quick := velo link
rtl_other := $(filter-out $(rtl_quick),$(patsubst rtl/%/test,%,$(wildcard rtl/*/test)))

.PHONY: help setup build run docs sim vm paper test check lint format bench bench-fabric bench-many-cores nightly packages dist man install uninstall clean
.PHONY: rtl-setup rtl-lint rtl-test rtl-formal rtl-mutate rtl-synth rtl-bench rtl-coverage rtl-nightly

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what building and running need (apt packages, private Python environment).
	@scripts/setup

build: setup ## Build the library, the velo command and the examples into build/.
	@scripts/build --without-tests release

# Without an MPI that velo serves, or on a busy machine (77), there is a report without NetPIPE.
run: ## See messages and NetPIPE over velo measured in two minutes; write a report.
	@scripts/setup run
	@scripts/build --without-tests release
	@build/bin/velo perf suite --json build/run.json
	@build/bin/velo report build/run.json -o build/report.html
	@if build/bin/velo netpipe --json build/netpipe.json; then \
	    build/bin/velo report build/run.json build/netpipe.json -o build/report.html; \
	else [ $$? = 77 ]; fi
	@scripts/parts
	@echo "The report is $(CURDIR)/build/report.html"

sim: rtl-setup ## Run NetPIPE over the simulated hardware, in virtual time.
	@scripts/setup sim
	@scripts/build --without-tests --with-sim release
	@build/bin/velo sim -- NPopenmpi -u 4096 -n 3 -o build/sim-netpipe.txt

vm: rtl-setup ## Pass verified MPI messages between two virtual machines, by a driver and simulated cards.
	@scripts/setup sim vm
	@scripts/build --without-tests --with-sim release
	@$(MAKE) -s -C driver KDIR="$$(build/bin/velo vm --headers)"
	@build/bin/velo vm --nodes 2 -- NPopenmpi -i -u 1024 -n 3 -o build/vm-netpipe.txt

paper: rtl-setup ## Reproduce the papers' figures on the simulated hardware, into build/paper.html.
	@scripts/setup sim
	@scripts/build --without-tests --with-paper release
	@grep -q '"dimmnet_figure5"' build/rtl-bench.json 2>/dev/null || scripts/rtl bench
	@grep -q '"velo_regfile"' build/rtl-synth.json 2>/dev/null || \
		scripts/rtl synth velo_requester velo_completer velo_regfile
	@build/bin/velo paper -o build/paper.html --json build/paper.json

test: rtl-setup ## Run the quick tests, of every part some; at most 10 minutes.
	@scripts/setup test sim
	@$(kept) begin test
	@$(step) "quick tests" $(release) $(host) -- scripts/check_skips.py {junit} -- $(ctest) -L '^quick$$' -LE simulator --output-junit {junit}
	@$(step) "quick tests, simulator" $(release) $(simulated) -- scripts/check_skips.py {junit} -- ctest --preset quick -L simulator --output-junit {junit}
	@$(step) "tests of the tools" -- scripts/check_skips.py {junit} -- $(python) -m pytest --junit-xml {junit}
	@scripts/rtl test $(rtl_quick)
	@$(kept) table test

# Not again: what `make test` has run.
check: rtl-setup ## Run all other tests that a change must pass: sanitizers, simulator, hardware, proofs.
	@scripts/setup test sim vm
	@$(kept) begin check
	@$(step) "other tests" $(release) $(host) -- scripts/check_skips.py {junit} -- $(ctest) -L '^full$$' -LE simulator --output-junit {junit}
	@$(step) "other tests, simulator" $(release) $(simulated) -- scripts/check_skips.py {junit} -- ctest --preset full -L simulator --output-junit {junit}
	@$(step) "AddressSanitizer" --build asan $(host) -- scripts/check_skips.py {junit} -- ctest --preset asan -L '^(quick|sanitizers)$$' --output-junit {junit}
	@$(step) "ThreadSanitizer" --build tsan $(host) -- scripts/check_skips.py {junit} -- ctest --preset tsan -L '^(threads|sanitizers)$$' --output-junit {junit}
	@scripts/rtl test $(rtl_other)
	@scripts/rtl formal
	@scripts/rtl mutate --quick
	@$(kept) table check

docs: ## Build the documentation as one site, build/docs/index.html.
	@scripts/setup docs
	@scripts/docs
	@echo "The site is $(CURDIR)/build/docs/index.html"

lint: ## Check format, static analysis, and which folder depends on which.
	@scripts/setup test lint rtl
	@scripts/build --configure-only release
	@$(kept) begin lint
	@scripts/lint
	@$(step) "documentation" --without front-door,proofs,rtl-tests,tools-tests -- scripts/docs
	@$(MAKE) rtl-lint
	@$(kept) table lint

format: ## Rewrite C and Python sources in the project's format.
	@scripts/setup lint
	@scripts/lint --fix

bench: ## Measure velo and its peers, MPI too, interleaved; takes up to 25 minutes.
	@scripts/setup bench
	@scripts/build --without-tests release
	@build/bin/velo bench --json build/bench.json
	@build/bin/velo report --targets build/bench.json -o build/bench.html
	@echo "The report is $(CURDIR)/build/bench.html"

bench-fabric: ## Measure MPIs over velo's libfabric provider, and velo between hosts; takes some 5 minutes.
	@scripts/setup bench
	@scripts/build --without-tests release
	@$(python) tools/perf/ofi/mpis.py --json build/bench-mpis.json
	@$(python) scripts/bench_hosts.py --json build/bench-hosts.json

bench-many-cores: ## Measure velo and the MPIs that are there on all cores of this machine; takes up to 10 minutes.
	@scripts/setup bench
	@scripts/build --without-tests release
	@$(python) tools/bench/many_cores.py --json build/bench-many-cores.json

nightly: rtl-setup ## Run all checks fresh, and the long ones; NIGHT="--resume" goes on after an interruption.
	@scripts/setup test sim
	@$(python) scripts/nightly.py $(NIGHT)

packages: ## Build Debian packages into build/package/packages, and the Python wheel into build/wheel.
	@scripts/setup package
	@scripts/package
	@scripts/wheel

dist: ## Make the tarball of a release from the last commit, into build/dist.
	@scripts/dist

man: setup ## Build the man pages into build/man.
	@scripts/build --without-tests release
	@echo "Read them with: man -M $(CURDIR)/build/man velo_send"

rtl-setup: ## Install the hardware's tools (simulation, lint, proof, synthesis).
	@scripts/rtl-setup

rtl-lint: rtl-setup ## Check the hardware's sources: verible, slang, Verilator.
	@scripts/rtl lint

rtl-test: rtl-setup ## Simulate every block against its tests.
	@scripts/rtl test

rtl-formal: rtl-setup ## Prove what every block promises.
	@scripts/rtl formal

rtl-mutate: rtl-setup ## Break the hardware on purpose; see that a proof or a test notices each time.
	@scripts/rtl mutate

rtl-synth: rtl-setup ## Synthesize; print area beside the paper's.
	@scripts/rtl synth

rtl-bench: rtl-setup ## Measure node, switch and links in cycles into build/rtl-bench.json.
	@scripts/rtl bench

rtl-coverage: rtl-setup ## Measure what the random runs of whole nodes reach.
	@scripts/rtl coverage

rtl-nightly: rtl-setup ## Run the hardware's long random runs, long proofs, and all breaks.
	@scripts/rtl nightly
	@scripts/rtl formal-nightly
	@scripts/rtl mutate

install: setup ## Install into PREFIX (default /usr/local).
	@scripts/build --without-tests release
	@scripts/install "$(PREFIX)"

uninstall: ## Take away what `make install` has put into PREFIX, and nothing else.
	@scripts/install --remove "$(PREFIX)"

clean: ## Remove everything built; the Python environment stays.
	@rm -rf build
