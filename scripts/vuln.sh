#!/usr/bin/env bash
# Looks for known vulnerabilities in what we use (govulncheck): in all packages, or in those that are named. Ends with an error when it
# finds one. Where the database cannot be reached, it says so and skips. GO names the go command, GOVULNDB another database.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v curl >/dev/null; then
	echo "govulncheck: install curl first (scripts/deps.sh does), which asks whether the database can be reached" >&2
	exit 1
fi
database=${GOVULNDB:-https://vuln.go.dev}
if ! curl --silent --fail --output /dev/null --max-time 20 "$database/index/modules.json"; then
	echo "govulncheck: skipped, since $database does not answer from here"
	exit 0
fi
[ $# -gt 0 ] || set -- ./...
exec env GOFLAGS= "${GO:-go}" run golang.org/x/vuln/cmd/govulncheck@v1.1.4 -db "$database" "$@"
