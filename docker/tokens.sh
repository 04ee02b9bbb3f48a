#!/bin/sh
# Makes a token for the workers of each stage, valid for that stage alone, and an admin's, in the
# database of docker/compose.yaml. It prints them as lines for docker/.env, and skips tokens that are
# there already. So it can run again after an interruption, or to replace a token whose line was
# removed. A replaced token stays valid until it is revoked.
set -eu
cd "$(dirname "$0")"
token() { # VARIABLE NAME ROLE [--stage STAGE]
  if [ -f .env ] && grep -q "^HOLDFAST_TOKEN_$1=." .env; then
    return
  fi
  secret=$(docker compose --file compose.yaml run --rm --no-deps --no-TTY registry token create --database --again --name "$2" --role "$3" ${4:+"$4" "$5"})
  echo "HOLDFAST_TOKEN_$1=$secret"
}
# generated: stages, by go generate ./docker
stages='expand report estimate provision download scan process replicate record notify apply cleanup delete deliver fixity restore'
# end of stages
for stage in $stages; do
  token "$(echo "$stage" | tr '[:lower:]' '[:upper:]')" "worker-$stage" worker --stage "$stage"
done
token ADMIN admin admin
