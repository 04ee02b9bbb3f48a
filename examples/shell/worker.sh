#!/usr/bin/env bash
# Serves the function count-words with curl and jq (docs/functions-protocol.md). Needs HOLDFAST_URL
# and HOLDFAST_TOKEN.
set -uo pipefail

api=${HOLDFAST_URL%/}/api/v1
worker=$(cat /proc/sys/kernel/random/uuid)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
stopping=
trap 'stopping=1' TERM INT

# call METHOD PATH BODY OUT writes the answer to OUT and its status to standard output. It repeats a
# request that was not answered, except when the program stops.
call() {
	local status wait=1
	while :; do
		status=$(curl -sS --max-time 60 -X "$1" -H "Authorization: Bearer $HOLDFAST_TOKEN" -H "Content-Type: application/json" \
			--data-binary @- -o "$4" -w '%{http_code}' "$api$2" <<<"$3" 2>/dev/null)
		if [[ $status =~ ^[234] || -n $stopping ]]; then
			echo "$status"
			return
		fi
		sleep "$wait"
		wait=$((wait < 16 ? 2 * wait : 30))
	done
}

# count_words ATTEMPT counts words into ATTEMPT/result. Its exit code is 0, or 1 with ATTEMPT/error.
count_words() {
	jq -r '.args.lines[] // empty' "$1/run" >"$1/text"
	if jq -e '[.args.lines[] | . == null] | any' "$1/run" >/dev/null; then
		echo "a line has no text" >"$1/error"
		return 1
	fi
	sleep "$(jq -r '.args.seconds // 0' "$1/run")" &
	wait $! # so that a signal ends it at once
	wc -w <"$1/text" | tr -d ' ' >"$1/result"
}

work() {
	local at="$folder" attempt id job end
	id=$(jq -r .id "$at/run")
	attempt=/tasks/$id/attempts/$(jq -r .attempt "$at/run")
	rm -f "$at/result" "$at/error"
	(
		trap 'kill $(jobs -p) 2>/dev/null; exit 1' TERM
		count_words "$at"
	) &
	job=$!
	local progress='[{"title":"Steps","position":1,"end":2}]'
	while kill -0 "$job" 2>/dev/null; do
		case $(call POST "$attempt/renew" "{\"worker\":\"$worker\",\"progress\":$progress,\"wait_seconds\":1}" "$at/renewal") in
		404 | 409)
			kill "$job"
			wait "$job"
			echo "lost $id"
			return
			;;
		esac
		progress='[]' # only what has moved
		[ -n "$stopping" ] && kill "$job" 2>/dev/null
	done
	wait "$job"
	if [ -s "$at/result" ]; then
		end=$(jq -c '{outcome: "done", result: .}' "$at/result")
	elif [ -s "$at/error" ]; then
		end=$(jq -Rsc '{outcome: "retry", error: .}' "$at/error")
	else
		end='{"outcome":"released"}'
	fi
	echo "settled $id $(call POST "$attempt/settle" "$end" "$at/verdict")"
}

status=$(call POST /functions '{"functions":[{"name":"count-words","max_attempts":2,"first_seconds":1}]}' "$folder/answer")
if [ "$status" != 204 ]; then
	echo "the functions were not announced: $(jq -r .detail "$folder/answer")" >&2
	exit 1
fi
while [ -z "$stopping" ]; do
	request=$(cat /proc/sys/kernel/random/uuid)
	case $(call POST /tasks/claim "{\"worker\":\"$worker\",\"functions\":[\"count-words\"],\"request_id\":\"$request\",\"wait_seconds\":5}" "$folder/run") in
	200) work ;;
	401 | 403)
		jq -r .detail "$folder/run" >&2
		exit 1
		;;
	esac
done
