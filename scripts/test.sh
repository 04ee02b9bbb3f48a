#!/usr/bin/env bash
# Runs every test, in random order: under the race detector where we share memory, without it where that shows nothing more.
# REQUIRE_SERVICES=1 makes a missing service a failure. GO names the go command.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# These run whole without the race detector: the processes that e2e starts are not watched in any case, and the Registry's
# suites are long. What many callers do at once there runs under it, too.
long=(./e2e ./registry/sqlstore ./registry/protocol)
at_once='^TestStore$/^(claim|fence|feed|lock|renew|settle|stop)$|^TestPostgreSQL$/^(claim|lock|settle)$|^Test(Group|Joint|Swarm|Processes|Turns|Store_.*)$|^TestR16_'

# The workers' tests that kill, fail or fill at every call in turn do the same work over and over: once under the race detector, by
# the other tests of these steps, is enough.
in_turn='DiesAnywhere|EveryFault|FullAfterAnyByte|AtEachCall|AnswersLost|ManyKeys'

go_test() { "${GO:-go}" test -shuffle=on -timeout 25m "$@"; } # what go vet says of tests, it has said before

# The C library that SQLite was translated from is not watched: it is not ours, and watching it makes the Registry's tests
# six times slower. The race detector needs cgo.
race() { CGO_ENABLED=1 go_test -vet=off -race -gcflags='modernc.org/...=-race=false' "$@"; }

module=$("${GO:-go}" list -m)
mapfile -t others < <("${GO:-go}" list ./... | grep -vxF "$(printf "$module%s\n" /workers "${long[@]#.}")")

failed=0
race "${others[@]}" || failed=1
race -skip "$in_turn" ./workers & # alone it leaves a core idle half of the time
race -run "$at_once" ./registry/sqlstore ./registry/protocol || failed=1
wait $! || failed=1
CGO_ENABLED=0 go_test -vet=off -run "$in_turn" ./workers &
CGO_ENABLED=0 go_test -vet=off "${long[@]}" || failed=1
CGO_ENABLED=0 go_test -vet=off -run '^TestMemory' ./intake || failed=1 # the race detector takes several times the memory
wait $! || failed=1
exit $failed
