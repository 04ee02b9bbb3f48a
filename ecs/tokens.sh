#!/bin/sh
# Makes a token for each stage's workers and puts it into Parameter Store, where nobody sees it: below
# the path that follows, or /holdfast. Run it where HOLDFAST_DATABASE_URL is set and reaches the
# database, and where holdfast and aws are commands. A stage that has a token keeps it. To renew one,
# remove its parameter first:
#
#   aws ssm delete-parameter --name /holdfast/download/TOKEN
set -eu
path=${1:-/holdfast}
# generated: stages, by go generate ./ecs from the routes
stages='expand report estimate provision download scan process replicate record notify apply cleanup delete deliver fixity restore copy'
# end of stages
for stage in $stages; do
	if aws ssm get-parameter --name "$path/$stage/TOKEN" >/dev/null 2>&1; then
		echo "$path/$stage/TOKEN is there already"
		continue
	fi
	token=$(holdfast token create --database --again --name "worker-$stage" --role worker --stage "$stage")
	# From a file, because a command line can be read by others.
	umask 077
	file=$(mktemp)
	printf '%s' "$token" >"$file"
	aws ssm put-parameter --type SecureString --name "$path/$stage/TOKEN" --value "file://$file" >/dev/null || { rm -f "$file"; exit 1; }
	rm -f "$file"
	echo "$path/$stage/TOKEN is made"
done
