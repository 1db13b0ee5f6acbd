# Everything that a contributor runs. The work is done by tests/ci, which needs only a Python 3.9 or newer.
PYTHON ?= python3
CI_TOOL := PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests $(PYTHON) -m ci

.DEFAULT_GOAL := help
.PHONY: help check test unit lab-tests torture bench demo down status lane links format order picture site tarball clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## the lab with three Windows hosts on this machine, and enable-csi.yml on it
	@$(CI_TOOL) demo
down: ## stop the demo's lab
	@$(CI_TOOL) down
status: ## what of the demo's lab runs
	@$(CI_TOOL) status

check: ## format, types, lint, sanity on three ansible-core lines, docs, tarball (PARTS="ruff mypy": these alone)
	@$(CI_TOOL) check $(PARTS)
test: ## everything that decides a landing: check, unit, lab (PARTS as above)
	@$(CI_TOOL) test $(PARTS)
unit: ## the tests that need no lab (CORE=2.16: under that ansible-core line)
	@$(CI_TOOL) unit $(CORE)
lab-tests: ## the tests on the lab
	@$(CI_TOOL) lab-tests
torture: ## the tests that are longer than a landing may take (PARTS as above)
	@$(CI_TOOL) torture $(PARTS)
bench: ## the comparisons with other ways to do the same
	@$(CI_TOOL) bench $(ARGS)

lane: ## run CMD under one ansible-core line, e.g. CORE=2.16 CMD="ansible-playbook --version"
	@$(CI_TOOL) lane $(CORE) -- $(CMD)
links: ## the link tree by which a checkout works in place
	@$(CI_TOOL) links
format: ## lay out Python and Go files
	@$(CI_TOOL) format
order: ## keep what the lab's tests took in the last run: the next one begins with the longest
	@$(CI_TOOL) order
picture: ## draw in CONTRIBUTING.md which folder of plugin_utils imports which
	@$(CI_TOOL) picture
site: ## build the documentation in .work/site
	@$(CI_TOOL) check docs-site
tarball: ## build the collection's tarball from the last commit in .work/release
	@$(CI_TOOL) tarball
clean: ## remove what was made in this checkout (not the cache)
	rm -rf .collections .work
	find . -name __pycache__ -prune -exec rm -rf {} +
