#!/usr/bin/env bash
# Runs all tests in random order, and concurrent code also under the race detector.
# REQUIRE_SERVICES=1 makes a missing service a failure. GO names the go command. TEST_ALL=1 makes
# tests that inject a fault at each call in turn visit every call; otherwise TEST_SEED chooses some
# (internal/looptest). At the end it prints the time of each part (docs/contributing.md).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Without -trimpath builds depend on the folder, and a fresh clone could not use the caches.
export GOFLAGS="-trimpath ${GOFLAGS:-}"
export TEST_SEED=${TEST_SEED:-$(date +%N | sed 's/^0*//')}
echo "TEST_SEED=$TEST_SEED"

# Tests sync to disk some hundred thousand times, like the product. They lie in memory where there is
# room, because no power cut is tested.
room=$((8 << 20)) # KiB
if [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -1)" -gt $room ] 2>/dev/null && [ "$(awk '/MemAvailable/ {print $2}' /proc/meminfo)" -gt $room ]; then
	memory=$(mktemp -d /dev/shm/holdfast-test.XXXXXX)
	trap 'rm -rf "$memory"' EXIT
	chmod 755 "$memory" # PostgreSQL runs as another user
	# Test binaries lie there, too; some machines forbid to run them.
	if cp /bin/true "$memory/try" && "$memory/try" 2>/dev/null; then export TMPDIR=$memory; fi
	# Garbage is collected once it is four times as much as what is used, not as much: that is up to a
	# quarter of a test's time. A test that measures memory sets 100.
	export GOGC=400
fi
log=$(mktemp)

failed=0
# part NAME COMMAND... runs a part and records its seconds: by the clock, and of processors.
part() {
	local name=$1 ok=0
	shift
	TIMEFORMAT="$name: %0R s, of processors %0U + %0S s"
	{ time "$@" 1>&3 2>&4 || ok=1; } 2>>"$log"
	return $ok
} 3>&1 4>&2

go_test() { "${GO:-go}" test -shuffle=on -vet=off -timeout "${TIMEOUT:-25m}" "$@"; } # make vet has run
plain() { CGO_ENABLED=0 go_test "$@"; }
# SQLite, translated from C, is excluded: watching it makes the Registry's tests six times slower. The
# race detector needs cgo.
race() { CGO_ENABLED=1 go_test -race -gcflags='modernc.org/...=-race=false' "$@"; }

# These run completely without the race detector. Under it run the concurrent topics of the Registry's
# suites, and a random quarter of the tests of the large packages: all of them would take twice as long
# as everything else. TEST_ALL=1 runs all. The processes that e2e starts never run under it.
many='^TestStore$/^(claim|fence|feed|lock|renew|settle|stop)$|^TestPostgreSQL$/^(claim|lock|settle)$|^Test(Group|Joint|Swarm|Processes|Turns|Store_.*)$|^TestR16_'
if [ "${TEST_ALL:-}" = 1 ]; then many=.; fi
large=(bagit cmd/holdfast cmd/node intake ocfl process source/unpack staging storage/s3 task web/api web/ui workers)

# some FOLDER... prints a pattern for a random quarter of the tests of these packages.
some() {
	local folder
	if [ "${TEST_ALL:-}" = 1 ]; then
		echo .
	else
		for folder in "$@"; do cat "$folder"/*_test.go; done | sed -nE 's/^func (Test[A-Za-z0-9_]+)\(t .*/\1/p' |
			awk -v seed="$TEST_SEED" 'BEGIN { srand(seed) } rand() < 0.25 { out = out "|" $0 } END { print "^(" substr(out, 2) ")$" }'
	fi
}

# Packages without goroutines, in code and tests, have no races.
at_once_in='\bgo (func|[a-z][A-Za-z.]*\()|\.Go\(|"sync/|sync\.(Mutex|RWMutex|WaitGroup|Map|Cond|Pool)'
watched=() unwatched=()
while read -r package folder; do
	if grep -qE "$at_once_in" "$folder"/*.go; then watched+=("$package"); else unwatched+=("$package"); fi
done < <("${GO:-go}" list -f '{{.ImportPath}} {{.Dir}}' ./... | grep -vE "/holdfast/($(IFS='|' && echo "${large[*]}")|e2e|registry/sqlstore|web/protocol) ")

# start PART... runs a part beside the one that runs, so that cores do not idle while a test waits.
# If two run, it waits for the end of either.
running=0
start() {
	if [ $running -eq 2 ]; then wait -n || failed=1; else running=$((running + 1)); fi
	"$@" &
}

# The longest parts start first, so that both rows end at about the same time. e2e mostly waits for
# its processes, so it runs more tests at once than there are cores.
start part 'e2e' plain -parallel 4 ./e2e
start part 'race, packages' race "${watched[@]}"
start part 'registry/sqlstore, web/protocol' plain -parallel 4 ./registry/sqlstore ./web/protocol
start part 'race, some of the large packages' race -run "$(some "${large[@]}")" "${large[@]/#/./}"
start part 'large packages' plain "${large[@]/#/./}"
start part 'race, many at once' race -run "$many" ./registry/sqlstore ./web/protocol
start part 'packages' plain "${unwatched[@]}"
while [ $running -gt 0 ]; do
	wait -n || failed=1
	running=$((running - 1))
done

echo
cat "$log"
if [ $failed -ne 0 ]; then echo "failed; to repeat the random choices: TEST_SEED=$TEST_SEED"; fi
exit $failed
