#!/bin/bash
# Prints the side-by-side table of docs/performance.md. Arguments are those of `go run ./bench -help`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v curl >/dev/null || { echo "bench.sh: curl is missing: the table compares Holdfast with it" >&2; exit 1; }
[[ -x bin/holdfast ]] || { echo "bench.sh: bin/holdfast is missing: run make build" >&2; exit 1; }
exec go run ./bench -bin bin/holdfast "$@"
