#!/usr/bin/env bash
# Runs every test, in random order: under the race detector where we share memory, without it where that shows nothing more.
# REQUIRE_SERVICES=1 makes a missing service a failure. GO names the go command.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Without it what is built depends on the folder, and a fresh clone builds all of it anew.
export GOFLAGS="-trimpath ${GOFLAGS:-}"

# These run whole without the race detector: the processes that e2e starts are not watched in any case, and the Registry's
# suites are long. What many callers do at once there runs under it, too. The workers' tests are parted below.
apart='/(e2e|registry/sqlstore|web/protocol|workers) '
at_once='^TestStore$/^(claim|fence|feed|lock|renew|settle|stop)$|^TestPostgreSQL$/^(claim|lock|settle)$|^Test(Group|Joint|Swarm|Processes|Turns|Store_.*)$|^TestR16_'

# The workers' tests that kill, fail or fill at every call in turn do the same work over and over: once under the race detector, by
# the other tests of these steps, is enough.
in_turn='DiesAnywhere|EveryFault|FullAfterAnyByte|AtEachCall|AnswersLost|ManyKeys'

go_test() { "${GO:-go}" test -shuffle=on -timeout 25m "$@"; } # what go vet says of tests, it has said before

# The C library that SQLite was translated from is not watched: it is not ours, and watching it makes the Registry's tests
# six times slower. The race detector needs cgo.
race() { CGO_ENABLED=1 go_test -vet=off -race -gcflags='modernc.org/...=-race=false' "$@"; }

# A package in which nothing runs at once, in its code or in its tests, has nothing to watch.
at_once_in='\bgo (func|[a-z][A-Za-z.]*\()|\.Go\(|"sync'
watched=() plain=()
while read -r package folder; do
	if grep -qE "$at_once_in" "$folder"/*.go; then watched+=("$package"); else plain+=("$package"); fi
done < <("${GO:-go}" list -f '{{.ImportPath}} {{.Dir}}' ./... | grep -vE "$apart")

failed=0
race "${watched[@]}" || failed=1
CGO_ENABLED=0 go_test -vet=off "${plain[@]}" || failed=1
race -skip "$in_turn" ./workers & # alone it leaves a core idle half of the time
race -run "$at_once" ./registry/sqlstore ./web/protocol || failed=1
wait $! || failed=1
CGO_ENABLED=0 go_test -vet=off -run "$in_turn" ./workers &
# The processes that e2e starts wait for one another most of the time, so more of its tests run at once than there are cores.
CGO_ENABLED=0 go_test -vet=off ./registry/sqlstore ./web/protocol || failed=1
CGO_ENABLED=0 go_test -vet=off -parallel 4 ./e2e || failed=1
CGO_ENABLED=0 go_test -vet=off -run '^TestMemory' ./intake || failed=1 # the race detector takes several times the memory
wait $! || failed=1
exit $failed
