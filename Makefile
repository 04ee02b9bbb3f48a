# Targets document themselves: the text after ## is what `make` alone prints.

SHELL := /bin/bash
.DEFAULT_GOAL := help

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# Linters are built once per version of tools/go.mod and of Go, beside Go's build cache. That takes
# three minutes on a fresh machine.
TOOLS := $(shell dirname "$$($(GO) env GOCACHE)")/holdfast-tools/$(shell cat tools/go.mod tools/go.sum | sha256sum | cut -c1-16)-$(shell $(GO) env GOVERSION)
TOOLS_READY := $(TOOLS)/.ready

# Only the race detector needs cgo. Everything else shares one build without it.
export CGO_ENABLED = 0

# Without -trimpath builds depend on the folder, and a fresh clone could not use the caches.
export GOFLAGS := -trimpath $(GOFLAGS)

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the static binary bin/holdfast
	$(GO) build -ldflags '-s -w -X main.version=$(VERSION)' -o bin/holdfast ./cmd/holdfast

# It publishes nothing; docs/contributing.md says how to. FOLDER is where the files go.
.PHONY: release
release: ## Make the files of a release: make release VERSION=v0.9.0
	$(GO) run ./cmd/release $(VERSION) $(or $(FOLDER),dist/$(VERSION))

.PHONY: reproducible
reproducible: ## Build twice and compare the bytes; COLD=1 compiles everything anew
	@GO=$(GO) scripts/reproducible.sh

.PHONY: demo
demo: build ## Show one deposit go through the whole pipeline on this machine
	$(GO) run ./cmd/demo bin/holdfast

.PHONY: test
test: deps vet lint tidy vuln reproducible ## What CI runs: all tests, all services required, concurrent code under -race
	REQUIRE_SERVICES=1 GO=$(GO) scripts/test.sh

# make test injects faults into some calls, different ones each time. This target injects them into
# all calls, and runs all tests under the race detector. A failure prints how to repeat it.
.PHONY: test-all
test-all: deps ## Run every test with a fault at every call, hours on a small machine
	TEST_ALL=1 TIMEOUT=6h REQUIRE_SERVICES=1 GO=$(GO) scripts/test.sh

.PHONY: check
check: fmt-check vet staticcheck tidy ## What to run before a commit: absent services are skipped
	GO=$(GO) scripts/test.sh

.PHONY: deps
deps: ## Install what the tests need and the machine lacks (Debian, as root)
	scripts/deps.sh
	GO=$(GO) scripts/testserver.sh s3gateway >/dev/null
	GO=$(GO) scripts/testserver.sh nsqd >/dev/null || echo 'nsqd cannot be built here; its tests are skipped' >&2
	GO=$(GO) scripts/testserver.sh siegfried >/dev/null
	GO=$(GO) scripts/testserver.sh kubernetes >/dev/null
	GO=$(GO) scripts/testserver.sh pebble >/dev/null
	GO=$(GO) scripts/testserver.sh ocflgo >/dev/null
	GO=$(GO) scripts/previous.sh >/dev/null || echo 'the version before this one cannot be built here' >&2

.PHONY: vet
vet: ## Run go vet
	$(GO) vet ./...

.PHONY: lint
lint: $(TOOLS_READY) ## Run golangci-lint, formatting included
	$(TOOLS)/golangci-lint run --allow-parallel-runners ./...

.PHONY: staticcheck
staticcheck: $(TOOLS_READY)
	$(TOOLS)/staticcheck -checks all ./...

.PHONY: fmt-check
fmt-check: $(TOOLS_READY)
	@unformatted="$$($(TOOLS)/gofumpt -l .)"; if [ -n "$$unformatted" ]; then echo "run make fmt:"; echo "$$unformatted"; exit 1; fi

.PHONY: fmt
fmt: $(TOOLS_READY) ## Format all Go files (gofumpt, goimports)
	$(TOOLS)/golangci-lint fmt ./...

.PHONY: tidy
tidy:
	$(GO) mod tidy -diff

.PHONY: vuln
vuln: ## Look for known vulnerabilities, if the database can be reached
	@GO=$(GO) scripts/vuln.sh $(PACKAGES)

.PHONY: bench
bench: build ## Run the benchmarks
	$(GO) test -run '^$$' -bench . ./...
	@if [ -x scripts/bench.sh ]; then scripts/bench.sh; fi

# This measures; it is not a test. docs/performance.md says how to record new ratios.
.PHONY: bench-check
bench-check: build ## Compare a short benchmark with recorded ratios
	scripts/bench.sh -check bench/ratios.json

# River and Asynq are a module of their own, which CI does not build: it would fetch them from the
# network for nothing that the product needs.
.PHONY: bench-peers
bench-peers: build ## Compare six stages with River and Asynq, on a PostgreSQL and Redis of its own
	cd bench/peers && $(GO) vet . && $(GO) build -o ../../bin/peers .
	scripts/bench-servers.sh -only peers -peers bin/peers

# make test has a few faults; this has many. The seed that it prints first replays it: make chaos SEED=...
.PHONY: alerts
alerts: build ## Run Holdfast with faults under a real Prometheus; each alert must fire and end
	scripts/alerts.sh bin/holdfast

.PHONY: completions
completions: build ## Press Tab in a real bash, zsh and fish, and compare what they complete
	scripts/completion.sh bin/holdfast

.PHONY: chaos
chaos: deps ## Kill, pause and cut off real processes hundreds of times, and check that nothing is lost
	CHAOS_SEED=$(SEED) CHAOS_FAULTS=$(or $(FAULTS),220) CHAOS_SCALE=$(or $(SCALE),25) REQUIRE_SERVICES=1 \
		$(GO) test ./e2e -run '^TestChaos' -count 1 -v -timeout 60m

.PHONY: clean
clean: ## Remove what was built here
	rm -rf bin

$(TOOLS_READY):
	mkdir -p $(TOOLS)
	cd tools && GOWORK=off GOFLAGS= GOBIN=$(TOOLS) $(GO) install tool
	touch $@
