#!/usr/bin/env bash
# Runs Holdfast with faults under a real Prometheus with the rules of deploy/prometheus, and fails
# unless each expected alert fires, and none before the faults. The rules' times and two thresholds
# are shortened, so that it takes about a minute. Needs Debian's prometheus, python3, curl and jq.
# Usage: scripts/alerts.sh HOLDFAST
set -euo pipefail
holdfast=$(realpath "$1")
rules=$(realpath "$(dirname "$0")/../deploy/prometheus/alerts.yaml")
top=$(mktemp -d -p "${TMPDIR:-/dev/shm}") # in memory: a disk that is rather full has alerts of its own
cd "$top"
started=()
finish() {
	for pid in "${started[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
	rm -rf "$top"
}
trap finish EXIT
port() { python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])'; }
api=$(port) prom=$(port) source=$(port) closed=$(port)
up() {
	HOLDFAST_NET_ALLOW=127.0.0.0/8 "$@" "$holdfast" up --dir data --listen "127.0.0.1:$api" >>up.log 2>&1 &
	pid=$!
	started+=("$pid")
	until "$holdfast" health --dir data >/dev/null 2>&1; do
		kill -0 "$pid" || { cat up.log; exit 1; }
		sleep 0.2
	done
}
ask() { "$holdfast" "$@" --dir data 2>>ask.log || { cat ask.log >&2; return 1; }; }
firing() { curl -fsS "http://127.0.0.1:$prom/api/v1/alerts" | jq -r '[.data.alerts[] | select(.state == "firing") | .labels.alertname] | unique | join(" ")'; }
expect() {
	for _ in $(seq 120); do
		if [[ " $(firing) " == *" $1 "* ]]; then
			echo "fires: $1 ($2)"
			return
		fi
		sleep 1
	done
	echo "does not fire within 2 minutes: $1 ($2); firing: $(firing)" >&2
	exit 1
}

up env
ask token create --name prometheus --role viewer --json | jq -r '.secret // .token' >token
sed -E 's/^( *for: ).*/\12s/; s/> 3600/> 10/; s/\[[0-9]+[mh]\]/[20s]/' "$rules" >rules.yaml
cat >prometheus.yaml <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs:
  - job_name: holdfast-registry
    authorization: {credentials_file: token}
    static_configs: [{targets: ["127.0.0.1:$api"]}]
END
prometheus --config.file=prometheus.yaml --storage.tsdb.path=tsdb --web.listen-address="127.0.0.1:$prom" >prometheus.log 2>&1 &
started+=($!)
until curl -fsS "http://127.0.0.1:$prom/-/ready" >/dev/null 2>&1; do sleep 0.2; done
python3 -m http.server --bind 127.0.0.1 "$source" --directory "$(mkdir -p web && echo web)" >/dev/null 2>&1 &
started+=($!)

mkdir deposit
for i in 1 2 3; do echo "file $i" >"deposit/$i.txt"; done
ask submit deposit --title "A folder" --wait >/dev/null
sleep 10
before=$(firing)
if [ -n "$before" ]; then
	echo "fires without a fault: $before" >&2
	exit 1
fi
echo "an ingest without faults: no alert fires"

for i in $(seq 40); do ask submit "http://127.0.0.1:$source/missing-$i" --type file >/dev/null; done
expect HoldfastItemsFail "40 sources answer 404"

ask feed add broken --to "http://127.0.0.1:$closed/" >/dev/null
echo more >deposit/more.txt
ask submit deposit --title "Another folder" --wait >/dev/null
expect HoldfastSubscriptionFailing "a webhook's port is closed"

find data -name 1.txt -path '*content*' | head -n 1 | while read -r file; do
	chmod u+w "$file"
	echo damage >"$file"
done
ask object fixity --all --reason "a test of alerts" >/dev/null
expect HoldfastDamagedFiles "a stored file was overwritten"

ask hold add --scope worker --key "$(hostname)" --reason "a test of alerts" >/dev/null
echo still more >deposit/still.txt
ask submit deposit --title "A third folder" >/dev/null
expect HoldfastNoWorker "all workers are held"
expect HoldfastItemsWaitTooLong "nobody takes what is ready"

ask queue pause --reason "a test of alerts" >/dev/null
expect HoldfastPaused "everything is paused"

kill -9 "$pid"
expect HoldfastRegistryDown "the process was killed"
