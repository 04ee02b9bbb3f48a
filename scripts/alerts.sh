#!/usr/bin/env bash
# Runs Holdfast in its roles (Registry, worker, broker, PostgreSQL, Redis) with faults under a real
# Prometheus with the rules of deploy/prometheus. It fails unless each rule fires at the fault that should
# cause it, not before it, and no longer once that is mended; if another one fires; and if a query of the
# dashboard has no figure above 0 after all that.
#
# Times of the rules are shortened, so that it takes some ten minutes: "for" of minutes becomes as many
# seconds, of hours 10 s; every range becomes 20 s; an age that fires from 3600 or 900 s on does so from
# 10 s on, and from 300 s on from 20 s on. Counts and shares stay. Two times are not waited for but written
# into the database: that the last fixity checks, and the last search for foreign files, were two days ago.
#
# Needs root (it mounts a small volume), Go, python3, curl, and Debian's prometheus, postgresql,
# redis-server and jq. KEEP=FOLDER keeps the logs.
# Usage: scripts/alerts.sh HOLDFAST
set -euo pipefail
holdfast=$(realpath "$1")
source=$(realpath "$(dirname "$0")/..")
deploy=$source/deploy/prometheus
top=$(mktemp -d -p "${TMPDIR:-/dev/shm}") # in memory: a disk that is rather full has alerts of its own
chmod 755 "$top"
cd "$top"
started=()
finish() {
	for pid in "${started[@]}"; do kill -9 "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true; done
	[ -z "${KEEP:-}" ] || cp ./*.log "$KEEP" || true
	umount "$top/small" 2>/dev/null || true
	rm -rf "$top"
}
trap finish EXIT
# Ten free ports, below those that connections take for themselves.
read -r api health other prom web closed redis nsqd lookup smtp < <(python3 -c '
import random, socket
held = []
while len(held) < 10:
    s = socket.socket()
    try:
        s.bind(("127.0.0.1", random.randint(20000, 32000)))
        held.append(s)
    except OSError:
        pass
print(*(s.getsockname()[1] for s in held))')

# run NAME COMMAND...: starts it, and puts its id into the file NAME.pid.
run() {
	local name=$1
	shift
	"$@" >>"$name.log" 2>&1 &
	started+=("$!")
	echo "$!" >"$name.pid"
}
# lose NAME [SIGNAL]: ends what run started, by default as a crash would.
lose() {
	local pid
	pid=$(cat "$1.pid")
	kill "-${2:-KILL}" "$pid"
	wait "$pid" 2>/dev/null || true
}
# await WHAT COMMAND...: until the command succeeds.
await() {
	local what=$1
	shift
	for _ in $(seq 300); do
		if "$@" >/dev/null 2>&1; then return; fi
		sleep 0.2
	done
	echo "does not become ready: $what" >&2
	tail -n 20 ./*.log >&2
	exit 1
}
ask() { "$holdfast" "$@" 2>>ask.log || { tail -n 5 ask.log >&2; return 1; }; }

# alerts STATES: the alerts in these states (a regular expression), one a line.
alerts() {
	curl -fsS "http://127.0.0.1:$prom/api/v1/alerts" |
		jq -r --arg states "^($1)\$" '[.data.alerts[] | select(.state | test($states)) | .labels.alertname] | unique | .[]'
}
missed= fired=() want=() may=()
wrong() {
	echo "WRONG: $*" >&2
	missed=yes
}
others() {
	local alert
	while read -r alert; do
		if [[ -n $alert && " ${want[*]} ${may[*]} " != *" $alert "* ]]; then
			wrong "fires too: $alert (expected: ${want[*]})"
			may+=("$alert") # once
		fi
	done < <(alerts firing)
}
# fault ALERT... [-- ALERT...]: a fault comes that should cause the first, and may cause the others. None
# of the first may be about to fire already.
fault() {
	want=() may=()
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		want+=("$1")
		shift
	done
	[ $# -eq 0 ] || may=("${@:2}")
	local before
	before=$(alerts 'firing|pending')
	for alert in "${want[@]}"; do
		if grep -qx "$alert" <<<"$before"; then wrong "before its fault: $alert"; fi
	done
}
# fires WHY: until all expected alerts have fired.
fires() {
	local left=("${want[@]}") still now begun=$SECONDS
	while [ $((SECONDS - begun)) -lt 120 ]; do
		now=$(alerts firing)
		still=()
		for alert in "${left[@]}"; do
			if grep -qx "$alert" <<<"$now"; then
				echo "fires after $((SECONDS - begun)) s: $alert ($1)"
				fired+=("$alert")
			else
				still+=("$alert")
			fi
		done
		others
		left=("${still[@]}")
		if [ ${#left[@]} -eq 0 ]; then return; fi
		sleep 1
	done
	wrong "does not fire within 2 minutes: ${left[*]} ($1); firing: $now"
}
# ends WHY: until no alert fires or is about to.
ends() {
	local now begun=$SECONDS
	while [ $((SECONDS - begun)) -lt 150 ]; do
		others
		now=$(alerts 'firing|pending')
		if [ -z "$now" ]; then
			echo "ended after $((SECONDS - begun)) s: ${want[*]} ($1)"
			return
		fi
		sleep 1
	done
	wrong "does not end within 150 s: ${now//$'\n'/ } ($1)"
}

# PostgreSQL does not run as root.
PATH=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1):$PATH
mkdir pg
chown postgres: pg
as=(setpriv --reuid postgres --regid postgres --clear-groups)
"${as[@]}" "$(command -v initdb)" --pgdata pg/data --username postgres --auth trust --encoding UTF8 --locale C >/dev/null
postgres() {
	run postgres "${as[@]}" "$(command -v postgres)" -D pg/data -k "$top/pg" -c listen_addresses= -c fsync=off
	await PostgreSQL pg_isready -q -h "$top/pg"
}
sql() { psql -q -h "$top/pg" -U postgres -v ON_ERROR_STOP=1 -c "SET default_transaction_read_only = off" -c "$1" >/dev/null; }
# break_off ends all connections of Holdfast, which takes the database's setting with the next.
break_off() { sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"; }
postgres

# Staging is a volume of 256 MiB.
mkdir small storage
mount -t tmpfs -o size=256m tmpfs small
mkdir small/staging
export HOLDFAST_DATABASE_URL="postgres:///postgres?host=$top/pg&user=postgres"
export HOLDFAST_STAGING_URL="file://$top/small/staging" HOLDFAST_STORAGE_URL="file://$top/storage"
export HOLDFAST_REDIS_URL="redis://127.0.0.1:$redis/0" HOLDFAST_NSQLOOKUPD_ADDRS="127.0.0.1:$lookup"
export HOLDFAST_NET_ALLOW=127.0.0.0/8 HOLDFAST_LEASE=10s HOLDFAST_FIXITY_DAYS=1 HOLDFAST_TEMP_DIR=$top
export HOLDFAST_SMTP_URL="smtp://127.0.0.1:$smtp?tls=none" HOLDFAST_MAIL_FROM=holdfast@example.org HOLDFAST_MAIL_DOMAINS=example.org
HOLDFAST_RECEIPT_KEY=$(head -c 32 /dev/urandom | base64)
HOLDFAST_SECRET_KEY=$(head -c 32 /dev/urandom | base64)
export HOLDFAST_RECEIPT_KEY HOLDFAST_SECRET_KEY
export HOLDFAST_URL="http://127.0.0.1:$api"
ask migrate >/dev/null
secret() { ask token create --database --json "$@" | jq -r '.secret // .token'; }
HOLDFAST_TOKEN=$(secret --name admin --role admin)
export HOLDFAST_TOKEN
worker_token=$(secret --name all-stages --role worker --stage all)
secret --name prometheus --role viewer >token
ask storage init "file://$top/storage" >/dev/null

redis() { run redis redis-server --port "$redis" --bind 127.0.0.1 --save '' --appendonly no; }
broker() {
	run broker "$holdfast" broker --tcp-address "127.0.0.1:$nsqd" --http-address "127.0.0.1:$lookup"
	await broker curl -fsS "http://127.0.0.1:$lookup/ping"
}
registry() {
	run registry env HOLDFAST_LISTEN="127.0.0.1:$api" "$holdfast" registry
	await Registry curl -fsS "$HOLDFAST_URL/readyz"
}
# worker NAME PORT PROGRAM STAGE...
worker() {
	run "$1" env HOLDFAST_TOKEN="$worker_token" HOLDFAST_LISTEN="127.0.0.1:$2" HOLDFAST_MAX_ATTEMPTS=3 HOLDFAST_DOWNLOAD_MAX_ATTEMPTS=1 HOLDFAST_STAGING_RESERVE=0 "$3" worker "${@:4}"
	await "$1" curl -fsS "http://127.0.0.1:$2/readyz"
}
workers() { worker worker "$health" "$holdfast" expand report estimate provision download process record notify apply cleanup delete deliver fixity restore; }
redis
broker
registry
workers

sed -E 's/^( *for: [0-9]+)m/\1s/; s/^( *for: )[0-9]+h/\110s/; s/> (3600|900)$/> 10/; s/> 300$/> 20/; s/\[[0-9]+[mh]\]/[20s]/' "$deploy/alerts.yaml" >rules.yaml
cat >prometheus.yaml <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs:
  - job_name: holdfast-registry
    authorization: {credentials_file: token}
    static_configs: [{targets: ["127.0.0.1:$api"]}]
  - job_name: holdfast-workers
    static_configs: [{targets: ["127.0.0.1:$health", "127.0.0.1:$other"]}]
END
begin=$(date +%s)
run prometheus prometheus --config.file=prometheus.yaml --storage.tsdb.path=tsdb --web.listen-address="127.0.0.1:$prom"
await Prometheus curl -fsS "http://127.0.0.1:$prom/-/ready"

# /slow has 1 kB by its own account, and waits as long as the file slow exists; /big has 50 MB; both
# end with 404, as all else does. A
# POST is answered after 40 seconds. The mail server refuses every address as long as the file refuse exists.
cat >receiver.py <<'END'
import http.server, os, socketserver, sys, threading, time

class Web(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        while self.path.startswith("/slow") and self.command == "GET" and os.path.exists("slow"):
            time.sleep(0.2)
        if self.path.startswith(("/slow", "/big")) and self.command == "HEAD":
            self.send_response(200)
            self.send_header("Content-Length", "50000000" if self.path.startswith("/big") else "1000")
            self.end_headers()
        else:
            self.send_error(404)
    do_HEAD = do_GET
    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        time.sleep(40)
        self.send_response(204)
        self.end_headers()

class Mail(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"220 mail\r\n")
        for line in self.rfile:
            verb = line[:4].upper()
            if verb == b"RCPT" and os.path.exists("refuse"):
                self.wfile.write(b"550 no such person\r\n")
            elif verb == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                while self.rfile.readline() not in (b".\r\n", b""):
                    pass
                self.wfile.write(b"250 ok\r\n")
            else:
                self.wfile.write({b"QUIT": b"221 bye\r\n"}.get(verb, b"250 ok\r\n"))

class Threads(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = daemon_threads = True

mail = Threads(("127.0.0.1", int(sys.argv[2])), Mail)
threading.Thread(target=mail.serve_forever, daemon=True).start()
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Web).serve_forever()
END
run receiver python3 receiver.py "$web" "$smtp"
await receiver curl -sS "http://127.0.0.1:$web/"

mkdir deposit
n=0
# deposit ARGUMENTS...: a folder with content of its own.
deposit() {
	n=$((n + 1))
	for i in 1 2 3; do echo "file $i of $n" >"deposit/$i.txt"; done
	ask submit deposit --title "Folder $n" "$@" >/dev/null
}
# addresses PATH COUNT: deposits of one address each, every one another.
addresses() {
	for i in $(seq "$2"); do ask submit "http://127.0.0.1:$web/$1-$i" --type file >/dev/null; done
}

deposit --wait
deposit --wait
begun=$SECONDS
while [ $((SECONDS - begun)) -lt 25 ]; do
	others
	sleep 1
done
[ -n "$missed" ] || echo "an ingest without faults: no alert fires"

fault HoldfastItemsFail
addresses missing 30
fires "30 sources answer 404"
ends "there were no more"

fault HoldfastSubscriptionFailing
ask feed add broken --to "http://127.0.0.1:$closed/" >/dev/null
deposit --wait
fires "a webhook's port is closed"
ask feed remove broken >/dev/null
ends "it was removed"

fault HoldfastFeedLag
ask feed add slow --to "http://127.0.0.1:$web/" >/dev/null
deposit --wait
fires "a receiver takes 40 seconds for each request"
ask feed remove slow >/dev/null
ends "it was removed"

fault HoldfastDeliveriesFail
touch refuse
deposit --wait --notify nobody@example.org
fires "a mail server refuses an address"
rm refuse
ask item list state:failed action:deliver --json | jq -r .id | while read -r id; do ask item requeue "$id" --yes >/dev/null; done
ends "it accepts it, and the mail was requeued"

fault HoldfastDamagedFiles
damaged=$(find "$top/storage" -name 1.txt -path '*content*' | head -n 1)
cp -a "$damaged" right
chmod u+w "$damaged"
echo damage >"$damaged"
ask object fixity --all --reason "a test of alerts" >/dev/null
fires "a stored file was overwritten"
cp -a right "$damaged"
ask item list state:failed action:fixity --json | jq -r .id | while read -r id; do ask item requeue "$id" --yes >/dev/null; done
ends "its bytes were brought back, and its check requeued"

fault HoldfastTooFewCopies
ask storage set storage --offsite
ask collection show default --profile >profile.yaml
echo "offsite_copies: 1" >>profile.yaml
ask collection update default --profile profile.yaml >/dev/null
ask storage set storage --offsite=false
fires "no copy is off-site any more"
ask storage set storage --offsite
ends "all are again"

fault HoldfastForeignFiles
echo foreign >storage/foreign.txt
touch -d "2 days ago" storage/foreign.txt
sql "UPDATE setting SET at = at - 172800000000 WHERE name = 'sweep'" # the search comes once a day
fires "a file of somebody else is in the storage"
rm storage/foreign.txt
ask item list state:failed action:tidy --json | jq -r .id | while read -r id; do ask item requeue "$id" --yes >/dev/null; done
ends "it was removed, and the search requeued"

fault HoldfastWorkersDie -- HoldfastNoWorker
touch slow
addresses slow 8
running() { [ "$(ask item list stage:download status:running --json | wc -l)" -ge 6 ]; }
await "six downloads" running
lose worker
workers
fires "a worker with six attempts or more was killed"
rm slow
ends "another one took over"

fault HoldfastRedisFails
lose redis
for _ in $(seq 6); do deposit; done
fires "Redis was killed"
redis
ends "it runs again"

fault HoldfastRelayFails HoldfastNSQLost
lose broker
addresses missing-again 15
fires "the broker was killed"
broker
ends "it runs again"

fault HoldfastVolumeFull HoldfastNoRoom
head -c 250M /dev/zero >small/foreign
addresses big 1
fires "somebody filled staging"
rm small/foreign
ends "there is room again"

fault HoldfastStorageFails -- HoldfastAPIErrors
await "the end of all work" test -z "$(ask item list status:running --json)"
mount -o remount,ro small
# One after the other: what is counted before Prometheus has seen the counter once is no increase.
for _ in $(seq 15); do
	deposit 2>/dev/null || true
	sleep 1
done
fires "the disk of staging can only be read"
mount -o remount,rw small
ends "it can be written again"

fault HoldfastFixityLate -- HoldfastRegistryDown
ask hold add --scope stage --key fixity --reason "a test of alerts" >/dev/null
# A Registry counts every ten minutes, and when it starts.
sql "UPDATE stored_file SET checked_at = checked_at - 172800000000"
lose registry TERM
registry
fires "checks are held, and the last was two days ago"
ask hold remove --scope stage --key fixity >/dev/null
ask object fixity --all --reason "a test of alerts" --json >/dev/null
checked() { [ "$(psql -h "$top/pg" -U postgres -Atc "SELECT count(*) FROM stored_file WHERE checked_at < (extract(epoch FROM now()) - 90000) * 1000000")" -eq 0 ]; }
await "the checks" checked
lose registry TERM
registry
ends "the hold is gone, and all was checked"

fault HoldfastNoWorker HoldfastItemsWaitTooLong
lose worker TERM
deposit
fires "no worker runs"
workers
ends "one runs again"

fault HoldfastPaused -- HoldfastItemsWaitTooLong
ask queue pause --reason "a test of alerts" >/dev/null
fires "deposits are paused"
ask queue resume >/dev/null
ends "they go on"

fault HoldfastMixedVersions
(cd "$source" && CGO_ENABLED=0 GOFLAGS=-trimpath go build -ldflags '-s -w -X main.version=another' -o "$top/another" ./cmd/holdfast)
worker another "$other" "$top/another" notify
fires "a worker has another version"
lose another TERM
ends "it was stopped"

fault HoldfastSweepLate -- HoldfastAPIErrors
sql "ALTER DATABASE postgres SET default_transaction_read_only = on"
break_off
fires "the database can only be read"
sql "ALTER DATABASE postgres RESET default_transaction_read_only"
break_off
ends "it can be written again"

fault HoldfastDatabaseDown HoldfastAPIErrors -- HoldfastSweepLate
lose postgres INT
for _ in $(seq 30); do ask item list >/dev/null 2>&1 || true; done
fires "PostgreSQL was stopped"
postgres
ends "it runs again"

fault HoldfastRegistryDown -- HoldfastNoWorker HoldfastItemsWaitTooLong HoldfastWorkersDie
lose registry
fires "the process was killed"
registry
ends "it runs again"

rules=$(sed -n 's/.*- alert: //p' rules.yaml)
for rule in $rules; do
	if [ "$rule" = HoldfastBackupLate ]; then continue; fi # only `up` makes backups by itself
	if [[ " ${fired[*]} " != *" $rule "* ]]; then wrong "has not fired: $rule"; fi
done

# A query has figures if one of them was above 0 at some time of the run.
end=$(date +%s)
while IFS=$'\t' read -r title expr; do
	figures=$(curl -fsS "http://127.0.0.1:$prom/api/v1/query_range" --data-urlencode "query=$expr" -d "start=$begin" -d "end=$end" -d step=1 |
		jq '[.data.result[].values[][1] | select(. != "NaN") | tonumber? | select(. > 0)] | length')
	if [ "$figures" -eq 0 ]; then
		wrong "the dashboard is empty: $title: $expr"
	else
		echo "has figures: $title ($figures): $expr"
	fi
done < <(jq -r '.panels[] | .title as $title | .targets[]? | [$title, .expr] | @tsv' "$deploy/dashboard.json" | sed 's/\\\\/\\/g')
[ -z "$missed" ]
echo "all rules but HoldfastBackupLate fired at their faults and ended, and every query of the dashboard has figures; $SECONDS s"
