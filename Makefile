# Everything from a clean clone: Python >= 3.11 with venv, g++, make, perl and git are enough, the rest comes from PyPI
# into .venv. Targets may be called in any order and any number of times.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
SIZE ?= 8
BOARD ?= ulx3s_85f
SEED ?=
BAUD ?=
PROGRAMS ?= 2000
MUTANTS ?= 600

.PHONY: help setup demo check test test-all lint format bench resources cycles verilog synth bitstream sweep compare area prices netlist browser lockstep faults mutation coverage exactness campaign networks zoo exporters tpu_v1 peers litex fuzz serial remote formal docs site clean distclean
.DEFAULT_GOAL := help

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  SIZE=$(SIZE) sets the array of verilog and synth, PROGRAMS=$(PROGRAMS) the number of lockstep programs,"
	@echo "  MUTANTS=$(MUTANTS) the number of faults; BOARD=$(BOARD) is one of rtl/boards/board.py; SEED=1 places"
	@echo "  a bitstream once rather than three times, and BAUD=3000000 sets its serial port's rate."

setup: $(INSTALLED) ## Make .venv with every tool

$(INSTALLED): pyproject.toml
	@command -v $(PYTHON) > /dev/null || { echo "openmxu: needs Python 3.11 or newer: apt install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "openmxu: needs Python 3.11 or newer, $(PYTHON) is `$(PYTHON) -V 2>&1`: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { \
		echo "openmxu: $(PYTHON) cannot make virtual environments: apt install python3-venv" >&2; exit 1; }
	@echo "Setting up $(VENV): once, about a gigabyte, some minutes."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(INSTALLED) ## Run the digits network on the simulated RTL and compare it with ONNX Runtime
	$(BIN)/openmxu demo

check: $(INSTALLED) ## Run the tests that build no hardware
	$(BIN)/python -m pytest -n 2 -m "not build and not slow and not browser"

test: $(INSTALLED) ## Run the test suite
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not browser"

test-all: $(INSTALLED) ## Run it with its slow tests, and prove everything
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not browser"
	$(BIN)/python -m scripts.formal
	$(BIN)/python -m scripts.formal --planted

browser: $(INSTALLED) ## Look at the profile page in headless Chromium, which must be installed
	$(BIN)/python -m pytest -m browser

lint: $(INSTALLED) ## Check style, format and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(INSTALLED) ## Apply the format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(INSTALLED) ## Measure products and networks on the simulated RTL against their roofline
	$(BIN)/python -m scripts.performance

resources: $(INSTALLED) ## Compare cores with more and less of a resource, which takes hours the first time
	$(BIN)/python -m scripts.performance.resources

cycles: $(INSTALLED) ## Compare the cycle model with the simulated RTL
	$(BIN)/python scripts/cycle_model.py

verilog: $(INSTALLED) ## Write the core as build/openmxu_core_SIZE.v
	@mkdir -p build
	$(BIN)/openmxu verilog --size $(SIZE) -o build/openmxu_core_$(SIZE).v

synth: $(INSTALLED) ## Synthesize, place and route the AXI shell for ECP5
	$(BIN)/python scripts/synthesize.py --size $(SIZE)

bitstream: $(INSTALLED) ## Write the bitstream of BOARD
	$(BIN)/python scripts/synthesize.py --board $(BOARD) $(if $(SEED),--seed $(SEED)) $(if $(BAUD),--baud $(BAUD))

sweep: $(INSTALLED) ## Place all sizes on all parts and write the table of docs/fpga.md
	$(BIN)/python scripts/fpga_sweep.py

compare: $(INSTALLED) ## Place them and say what moved by more than 5 %
	$(BIN)/python scripts/fpga_sweep.py --compare

area: $(INSTALLED) ## Count the logic of each unit and write the table of docs/fpga.md
	$(BIN)/python scripts/area.py --size $(SIZE) --write

prices: $(INSTALLED) ## Count what more and less of each resource costs and write the table of docs/fpga.md
	$(BIN)/python -m scripts.fpga.prices --write

netlist: $(INSTALLED) ## Run the digits network on the synthesized netlist, cell by cell
	$(BIN)/python -m scripts.netlist ecp5

lockstep: $(INSTALLED) ## Compare the RTL with the interpreter on random programs
	$(BIN)/python scripts/lockstep.py --count $(PROGRAMS)

faults: $(INSTALLED) ## Provoke every fault on the RTL, and run random words as programs
	$(BIN)/python scripts/faults.py

mutation: $(INSTALLED) ## Plant faults in the netlist and count those that the suite notices
	$(BIN)/python -m scripts.mutation --count $(MUTANTS) --prove

coverage: $(INSTALLED) ## Count the lines of the Verilog that the suite executes, and the bits it toggles
	$(BIN)/python -m scripts.coverage

exactness: $(INSTALLED) ## Compare random layers with ONNX Runtime
	$(BIN)/python scripts/exactness.py

campaign: $(INSTALLED) ## Compare random models of one and of several layers with ONNX Runtime
	$(BIN)/python scripts/network_campaign.py

networks: $(INSTALLED) ## Compare the networks of examples/ with ONNX Runtime
	$(BIN)/python -m scripts.networks
	$(BIN)/python -m scripts.recurrent_networks

zoo: $(INSTALLED) ## Quantize, compile and run real networks from packages on PyPI
	$(BIN)/python -m scripts.zoo --layers

exporters: ## Try models straight from scikit-learn, PyTorch and Keras, in an environment of its own
	$(PYTHON) -m venv build/exporters
	build/exporters/bin/python -m pip install --disable-pip-version-check --editable '.[exporters]'
	build/exporters/bin/python -m scripts.exporters

tpu_v1: $(INSTALLED) ## Compare 256 × 256 elements with the TPU paper, by the cycle model and on the simulated RTL
	$(BIN)/python -m scripts.tpu_v1
	$(BIN)/python -m scripts.tpu_v1.rtl

peers: ## Compare matrix products with SCALE-Sim, in an environment of its own
	$(PYTHON) -m venv build/peers
	build/peers/bin/python -m pip install --disable-pip-version-check --editable '.[peers]'
	build/peers/bin/python -m scripts.peers

litex: ## Simulate VexRiscv, LiteDRAM and the core running networks through the C driver, in an environment of its own
	$(PYTHON) -m venv build/litex/venv
	build/litex/venv/bin/python -m pip install --disable-pip-version-check --editable '.[demo,litex]'
	build/litex/venv/bin/python -m scripts.litex

fuzz: $(INSTALLED) ## Give the tools 20,000 damaged models, programs and arrays
	$(BIN)/python -m scripts.fuzz

serial: $(INSTALLED) ## Run the digits network over a serial cable that damages 1 % of the frames
	$(BIN)/python -m scripts.serial_demo

remote: $(INSTALLED) ## Run the digits network at an address, and kill clients and servers
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m scripts.remote

formal: $(INSTALLED) ## Prove what the units promise, for every input
	$(BIN)/python -m scripts.formal
	$(BIN)/python -m scripts.formal --planted

docs: $(INSTALLED) ## Write docs/isa.md, docs/registers.md, the C header and docs/array.svg anew
	$(BIN)/python scripts/docs/isa.py
	$(BIN)/python scripts/docs/registers.py
	$(BIN)/python -m scripts.docs.array_picture

site: $(INSTALLED) ## Build the documentation site in build/site
	$(BIN)/python -m scripts.docs.site

clean: ## Remove what was built, except .venv
	rm -rf build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find openmxu rtl sim tb tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## Remove .venv as well
	rm -rf $(VENV) openmxu.egg-info
