#!/bin/sh
# Makes a token for the workers of each stage, and an admin's, in the database of docker/compose.yaml, and prints them as lines
# for docker/.env. A name is given only once: to make a token anew, revoke it and make one of another name.
set -eu
cd "$(dirname "$0")"
token() { # VARIABLE NAME ROLE
  secret=$(docker compose --file compose.yaml run --rm --no-deps --no-TTY registry token create --database --name "$2" --role "$3")
  echo "HOLDFAST_TOKEN_$1=$secret"
}
for stage in expand estimate provision download scan process replicate record notify report apply cleanup delete fixity deliver restore; do
  token "$(echo "$stage" | tr '[:lower:]' '[:upper:]')" "worker-$stage" worker
done
token ADMIN admin admin
