#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# small_shm.sh SIZE COMMAND...: run a command where /dev/shm has no more room than that.
unshare --user --map-root-user --mount true 2>/dev/null || exit 77
exec unshare --user --map-root-user --mount sh -c \
    'mount -t tmpfs -o "size=$0" tmpfs /dev/shm && exec "$@"' "$@"
