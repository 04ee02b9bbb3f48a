#!/usr/bin/env bash
# Builds the program twice, from two copies of the sources in different folders, and compares the
# bytes. It shows that no path and no time gets into the program, and that linking is repeatable. The
# two share Go's cache of packages. With COLD=1 the second one compiles all packages anew, in a cache
# of its own: that shows it for compiling, too, and takes minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
go=${GO:-go}
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

build() { # FOLDER
	mkdir -p "$1"
	git ls-files -z | while IFS= read -r -d '' name; do [ ! -e "$name" ] || printf '%s\0' "$name"; done | tar -c --null -T - | tar -x -C "$1"
	(cd "$1" && GOFLAGS= GOWORK=off CGO_ENABLED=0 "$go" build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=reproducible' -o "$work/$(basename "$1")" ./cmd/holdfast)
}

build "$work/a/one"
if [ "${COLD:-}" = 1 ]; then export GOCACHE=$work/cache; fi
build "$work/another/folder/two"
if ! cmp "$work/one" "$work/two"; then
	echo "two builds of the same sources differ" >&2
	exit 1
fi
echo "two builds are alike: $(sha256sum <"$work/one" | cut -c1-64)"
