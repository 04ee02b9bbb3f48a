#!/usr/bin/env bash
# Tries completion as people do: presses Tab in a real bash, zsh and fish, each in a terminal of its own,
# against a running `up`, and compares the words that the shell then has with those that it should have.
#
# Needs python3, jq, and Debian's bash-completion, zsh and fish.
# Usage: scripts/completion.sh HOLDFAST
set -euo pipefail
holdfast=$(realpath "$1")
top=$(mktemp -d)
cd "$top"
mkdir bin
ln -s "$holdfast" bin/holdfast
export PATH=$top/bin:$PATH HOME=$top
unset "${!HOLDFAST_@}"
holdfast up --listen 127.0.0.1:0 >up.log 2>&1 &
up=$!
finish() {
	kill "$up" && wait "$up" || true
	rm -rf "$top"
}
trap finish EXIT
for _ in $(seq 100); do
	if [ -e holdfast-data/client.json ] && holdfast queue status >/dev/null 2>&1; then break; fi
	sleep 0.2
done
holdfast collection create maps --profile <(echo 'name: Maps') --owner ark:/99999/owner --member-of ark:/99999/maps >/dev/null
echo plan >plan.txt
holdfast submit plan.txt --collection maps --wait >/dev/null 2>&1
item=$(holdfast item list action:ingest --json | jq -r .id)
batch=$(holdfast item list action:batch --json | jq -r .id)
object=$(holdfast object list --json | jq -r .object_id)

# What is typed before Tab, and the last word after it.
cat >cases <<CASES
holdfast coll|collection
holdfast collection show ma|maps
holdfast submit --collection ma|maps
holdfast item list state:fai|state:failed
holdfast item list collection:ma|collection:maps
holdfast item list --status compl|completed
holdfast item list --stage dow|download
holdfast token create --role oper|operator
holdfast token create --stage repl|replicate
holdfast hold add --scope coll|collection
holdfast hold add --scope collection --key ma|maps
holdfast hold add --scope stage --key dow|download
holdfast item show ${item:0:35}|$item
holdfast watch ${item:0:35}|$item
holdfast batch show ${batch:0:35}|$batch
holdfast object show ${object:0:12}|$object
CASES

python3 - <<'PYTHON'
import os, pty, select, signal, sys, time

SHELLS = {
    "bash": (["bash", "--norc", "-i"], ". /usr/share/bash-completion/bash_completion; . <(holdfast completion bash); args() { printf '<%s>' \"$@\"; echo END; }; PS1='ready> '"),
    "zsh": (["zsh", "-f", "-i"], "bindkey -e; autoload -U compinit && compinit -u; . <(holdfast completion zsh); args() { printf '<%s>' \"$@\"; echo END; }; PS1='ready> '"),
    "fish": (["fish", "--no-config", "-i"], "holdfast completion fish | source; function args; printf '<%s>' $argv; echo END; end; function fish_prompt; echo -n 'ready> '; end"),
}

def read_until(fd, what, most=20):
    """What the terminal shows, until it shows what ("": until nothing comes for half a second)."""
    got, begun = "", time.time()
    while time.time() - begun < most:
        if select.select([fd], [], [], 0.5)[0]:
            chunk = os.read(fd, 65536).decode(errors="replace")
            if "\x1b[c" in chunk or "\x1b[0c" in chunk:
                os.write(fd, b"\x1b[?62c")  # fish asks what terminal this is
            got += chunk
        elif not what:
            return got
        if what and what in got:
            return got
    if what:
        raise SystemExit(f"the shell does not show {what!r}: {got[-500:]!r}")
    return got

failed = 0
for name, (command, prepare) in SHELLS.items():
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execvp(command[0], command)
    read_until(fd, "")
    os.write(fd, (prepare + "; echo PREP''ARED\n").encode())
    read_until(fd, "PREPARED")
    right = 0
    for line in open("cases"):
        typed, want = line.rstrip("\n").rsplit("|", 1)
        read_until(fd, "")
        os.write(fd, typed.encode() + b"\t")
        time.sleep(1.2)  # a completion comes within a second or not at all
        read_until(fd, "")
        os.write(fd, b"\x01args \n")
        out = read_until(fd, ">END")
        got = out[:out.rindex(">END")].rsplit("<", 1)[1]
        if got == want:
            right += 1
        else:
            failed += 1
            print(f"{name}: {typed}<Tab> becomes {got!r}, not {want!r}")
    print(f"{name}: {right} of {sum(1 for _ in open('cases'))} completions are right")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
sys.exit(1 if failed else 0)
PYTHON
