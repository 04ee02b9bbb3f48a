#!/usr/bin/env bash
# Runs scripts/bench.sh with a PostgreSQL and a Redis of its own, both durable: arguments are those of
# scripts/bench.sh. The servers' data lie below TMPDIR, so on the disk that is measured.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/deps.sh

folder=$(mktemp -d -t holdfast-bench-servers.XXXXXX)
servers=()
finish() {
	for pid in "${servers[@]}"; do kill -INT "$pid" && wait "$pid" || true; done
	rm -rf "$folder"
}
trap finish EXIT
chmod 755 "$folder"

# PostgreSQL does not run as root.
as=()
if [ "$(id -u)" -eq 0 ]; then
	as=(setpriv --reuid postgres --regid postgres --clear-groups)
	chown postgres: "$folder"
fi
programs=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
PATH=${programs:+$programs:}$PATH
"${as[@]}" initdb --pgdata "$folder/postgres" --username postgres --auth trust --encoding UTF8 --locale C >/dev/null
"${as[@]}" postgres -D "$folder/postgres" -k "$folder" -c listen_addresses= -c fsync=on -c synchronous_commit=on \
	-c max_connections=300 -c shared_buffers=256MB >"$folder/postgres.log" 2>&1 &
servers+=($!)
redis-server --port 0 --unixsocket "$folder/redis" --dir "$folder" --save '' --appendonly yes --appendfsync everysec >"$folder/redis.log" &
servers+=($!)
for try in {1..300}; do
	if pg_isready -q -h "$folder" && redis-cli -s "$folder/redis" ping >/dev/null 2>&1; then break; fi
	if [ "$try" -eq 300 ]; then cat "$folder"/*.log >&2; exit 1; fi
	sleep 0.1
done
scripts/bench.sh -postgres "postgres:///postgres?host=$folder&user=postgres" -redis "unix://$folder/redis" "$@"
