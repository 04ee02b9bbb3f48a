#!/usr/bin/env bash
# Builds the S3 server of the tests, tools/s3gateway, once per version of it and of Go, and prints where it is. It takes a
# minute on a fresh machine and nothing afterwards. Several may be run at once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../tools/s3gateway"

go=${GO:-go}
export GOWORK=off GOFLAGS= CGO_ENABLED=0
cache=$(dirname "$("$go" env GOCACHE)")/holdfast-tools
binary=$cache/s3gateway-$(cat main.go go.mod go.sum | sha256sum | cut -c1-16)-$("$go" env GOVERSION)
mkdir -p "$cache"
exec 9>"$binary.lock"
flock 9
if [ ! -x "$binary" ]; then
	"$go" build -trimpath -ldflags '-s -w' -o "$binary.new" .
	mv "$binary.new" "$binary"
fi
echo "$binary"
