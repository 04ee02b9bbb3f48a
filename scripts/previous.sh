#!/usr/bin/env bash
# Builds the program of the version before this one, for tests of upgrades, and prints its path. That
# is the last release that HEAD's parent contains, else the commit below. It builds once per version
# and version of Go. Concurrent calls are safe. Exit code 3: the history is not there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# There is no release yet. This stands for one: its database lacks seven migrations.
stand_in=5c9a7efcd07fb11583194d199586f09158ea4601

version=$(git describe --tags --abbrev=0 --match 'v[0-9]*' HEAD^ 2>/dev/null || echo $stand_in)
if ! commit=$(git rev-parse --quiet --verify "$version^{commit}" 2>/dev/null); then
	echo "the commit $version is not in this clone's history" >&2
	exit 3
fi

go=${GO:-go}
export GOWORK=off GOFLAGS=-trimpath CGO_ENABLED=0
cache=$(dirname "$("$go" env GOCACHE)")/holdfast-tools
binary=$cache/holdfast-$(git rev-parse --short=12 "$commit")-$("$go" env GOVERSION)
mkdir -p "$cache"
exec 9>"$binary.lock"
flock 9
if [ ! -x "$binary" ]; then
	sources=$(mktemp -d)
	trap 'rm -rf "$sources"' EXIT
	git archive "$commit" | tar -x -C "$sources"
	(cd "$sources" && "$go" build -ldflags "-s -w -X main.version=$version" -o "$binary.new" ./cmd/holdfast)
	mv "$binary.new" "$binary"
fi
echo "$binary"
