#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two processes in containers of their own, with namespaces of their own for processes, IPC and mounts
# and one folder in common, exchange messages and use each other's memory; a third container sees that
# one of them is killed. Skipped (77) where namespaces are not permitted.
#
#   check.sh PEER VELO_PERF VELO_INFO

set -euo pipefail

readonly peer=$1 perf=$2 info=$3
contain=(unshare --pid --ipc --mount --fork --kill-child)
((EUID == 0)) || contain+=(--map-root-user)
readonly contain
"${contain[@]}" true 2>/dev/null || { echo "skipped: namespaces are not permitted here"; exit 77; }

shared=$(mktemp -d /dev/shm/velo-containers.XXXXXX)
trap 'rm -rf "$shared"' EXIT
export VELO_DOMAIN=containers

# A container: a /proc and a /dev/shm of its own, in which the folder is all that others see, too.
# shellcheck disable=SC2016 # The shell inside expands it.
readonly inside=("${contain[@]}" sh -c 'shared=$1; shift
    mount -t tmpfs tmpfs /mnt && mkdir /mnt/shared && mount --bind "$shared" /mnt/shared &&
    mount -t tmpfs tmpfs /dev/shm && mount -t proc proc /proc &&
    VELO_SHM_DIR=/mnt/shared exec timeout 60 "$@"' sh "$shared")
both() {
    local first
    "${inside[@]}" "$@" 0 &
    first=$!
    "${inside[@]}" "$@" 1
    wait "$first"
}

both "$peer"
# Each process is number 1 or 2 of its own namespace: an id alone would not say who lives.
"${inside[@]}" "$perf" --listen --cpus 1 2>/dev/null &
"${inside[@]}" "$perf" latency --connect --sizes 8 --batches 2 --cpus 0 | grep '"type":"sample"\|"dropped":2' >/dev/null
wait
# One is killed: another container must see its port as dead, and a new peer takes its place.
"${inside[@]}" "$peer" 0 &
victim=$!
for ((i = 0; i < 100; i++)); do
    [[ ! -e $shared/velo.containers.0.0 ]] || break
    sleep 0.05
done
"${inside[@]}" "$info" --json | grep '"alive":true' >/dev/null ||
    { echo "a port of another container is not seen as alive" >&2; exit 1; }
kill -KILL "$victim"
wait "$victim" 2>/dev/null || true
"${inside[@]}" "$info" --json | grep '"alive":false' >/dev/null ||
    { echo "a port that was killed is seen as alive" >&2; exit 1; }
both "$peer"
echo "containers: messages, remote memory and death over one folder"
