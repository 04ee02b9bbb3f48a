#!/usr/bin/env bash
# Serves the function count-words with curl and jq (docs/functions-protocol.md). Needs HOLDFAST_URL
# and HOLDFAST_TOKEN.
set -uo pipefail
api=${HOLDFAST_URL%/}/api/v1
folder=$(mktemp -d) # only this user may read it
trap '[[ $BASHPID != $$ ]] || rm -rf "$folder"' EXIT # a subshell that is killed early may run it, too
stopping=
trap 'stopping=1' TERM INT
# A file: all users of the machine see the arguments of commands.
printf 'Authorization: Bearer %s\nContent-Type: application/json\n' "$HOLDFAST_TOKEN" >"$folder/headers"

uuid() { cat /proc/sys/kernel/random/uuid; }

# call METHOD PATH BODY writes the answer to the file answer and prints its status. It repeats a
# request that was not answered, except when the program stops.
call() {
	local status wait=1
	while :; do
		status=$(curl -s --max-time 60 -X "$1" -H @"$folder/headers" --data-binary @- -o "$folder/answer" -w '%{http_code}' "$api$2" <<<"$3")
		if [[ $status == [234]* || -n $stopping ]]; then
			echo "$status"
			return
		fi
		sleep "$wait"
		wait=$((wait < 16 ? 2 * wait : 30))
	done
}

# count_words prints the number of words in the task's lines. If it fails, it prints why instead.
count_words() {
	if jq -e '.args.lines | any(. == null)' "$folder/run" >/dev/null; then
		echo "a line has no text"
		return 1
	fi
	sleep "$(jq '.args.seconds // 0' "$folder/run")" & # stand-in for long work
	trap 'kill $!; exit 143' TERM
	wait $!
	jq -r '.args.lines[]' "$folder/run" | wc -w
}

work() {
	local id attempt job code news
	id=$(jq -r .id "$folder/run")
	attempt=/tasks/$id/attempts/$(jq -r .attempt "$folder/run")
	count_words >"$folder/output" &
	job=$!
	news='"progress":[{"title":"Steps","position":1,"end":2}],"log":[{"seq":1,"text":"counting"}],'
	while kill -0 "$job" 2>/dev/null; do
		case $(call POST "$attempt/renew" "{$news\"worker\":\"$worker\",\"wait_seconds\":1}") in
		404 | 409)
			kill "$job"
			wait "$job"
			echo "lost $id"
			return
			;;
		esac
		news= # only what is new
		[[ -n $stopping ]] || jq -e .drain "$folder/answer" >/dev/null && kill "$job" 2>/dev/null
	done
	wait "$job"
	code=$?
	case $code in
	0) call POST "$attempt/settle" "$(jq -c '{outcome: "done", result: .}' "$folder/output")" ;;
	143) call POST "$attempt/settle" '{"outcome":"released"}' ;; # told to stop
	*) call POST "$attempt/settle" "$(jq -Rsc '{outcome: "retry", error: .}' "$folder/output")" ;;
	esac | sed "s/$/ $id/"
}

worker=$(uuid)
status=$(call POST /functions '{"functions":[{"name":"count-words","max_attempts":2,"first_seconds":1}]}')
while [[ $status == 20[04] && -z $stopping ]]; do
	status=$(call POST /tasks/claim "{\"worker\":\"$worker\",\"functions\":[\"count-words\"],\"request_id\":\"$(uuid)\",\"wait_seconds\":5}")
	if [[ $status == 200 ]]; then
		mv "$folder/answer" "$folder/run"
		work
	fi
done
[[ -n $stopping ]] || { jq -r .detail "$folder/answer" >&2 && exit 1; }
