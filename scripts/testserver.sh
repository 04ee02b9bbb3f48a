#!/usr/bin/env bash
# Builds a test server, or another program for tests (a module below tools), and prints its path.
# It builds once per version of the server and of Go. Concurrent calls are safe.
set -euo pipefail

name=${1:?nsqd, s3gateway, siegfried, pebble, ocflgo or kubernetes}
case $name in
nsqd) package=github.com/nsqio/nsq/apps/nsqd ;;
s3gateway | kubernetes | ocflgo) package=. ;;
siegfried) package=github.com/richardlehane/siegfried/cmd/sf ;;
pebble) package=github.com/letsencrypt/pebble/v2/cmd/pebble ;;
*) echo "$name is not a program for tests" >&2; exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/../tools/$name"

go=${GO:-go}
export GOWORK=off GOFLAGS= CGO_ENABLED=0
cache=$(dirname "$("$go" env GOCACHE)")/holdfast-tools
sources=$(find . -name '*.go' | sort)
# shellcheck disable=SC2086 # names without spaces
binary=$cache/$name-$(cat $sources go.mod go.sum | sha256sum | cut -c1-16)-$("$go" env GOVERSION)
mkdir -p "$cache"
exec 9>"$binary.lock"
flock 9
if [ ! -x "$binary" ]; then
	# The tag static puts PRONOM's signatures into siegfried.
	"$go" build -tags static -trimpath -ldflags '-s -w' -o "$binary.new" "$package"
	mv "$binary.new" "$binary"
fi
echo "$binary"
