#!/usr/bin/env bash
# Installs missing programs that the tests start as services. Prints nothing if all are there.
set -euo pipefail

# command package...: installs the packages if the command is not found.
needs=(
	"gcc gcc libc6-dev" # the race detector
	"strace strace" # writes down file operations, for the losses of power
	"curl curl ca-certificates" # checks whether the vulnerability database answers; used by examples/shell
	"redis-server redis-server"
	"/usr/sbin/clamd clamav-daemon"
	"initdb postgresql"
	"node nodejs"
	"npm npm"
	"chromium chromium fonts-dejavu-core" # opens the pages
	"bsdtar libarchive-tools"
	"python3 python3" # runs examples/python
	"jq jq" # used by examples/shell
	"systemd-analyze systemd" # checks the units in deploy/systemd
	"promtool prometheus" # checks the alerts, and runs their tests
	"/usr/sbin/nginx nginx-light" # reverse proxies, set up as docs/security.md says
	"caddy caddy"
)

missing=()
for need in "${needs[@]}"; do
	read -r command packages <<<"$need"
	if ! command -v "$command" >/dev/null && ! compgen -G "/usr/lib/postgresql/*/bin/$command" >/dev/null; then
		read -ra packages <<<"$packages"
		missing+=("${packages[@]}")
	fi
done
if [ ${#missing[@]} -eq 0 ]; then
	exit 0
fi

if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
	echo "install these first, as root (Debian's names): ${missing[*]}" >&2
	exit 1
fi

# RUNLEVEL=1 keeps Debian from starting the services: tests start their own.
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
apt-get update -qq
apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
