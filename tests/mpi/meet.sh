#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# meet.sh PROGRAM VELO-RUN...: a job that serves and one that visits it, which know one ompi-server.
set -eu

program=$1
shift
command -v ompi-server >/dev/null || exit 77
folder=$(mktemp -d)
ompi-server --no-daemonize -r "$folder/uri" &
server=$!
trap 'kill "$server"; rm -rf "$folder"' EXIT
for ((i = 0; i < 300 && $(wc -c 2>/dev/null <"$folder/uri" || echo 0) == 0; i++)); do sleep 0.1; done
"$@" --ompi-server "file:$folder/uri" "$program" serve "$folder/port" &
serving=$!
"$@" --ompi-server "file:$folder/uri" "$program" visit "$folder/port"
wait "$serving"
