#!/usr/bin/env bash
# Looks for known vulnerabilities (govulncheck) in all packages, or in the given ones. It fails if it
# finds one, and skips with a message if the database cannot be reached. GO names the go command,
# GOVULNDB another database.
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
