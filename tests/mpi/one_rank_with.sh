#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run a rank; rank 1 with a setting of its own: one_rank_with.sh NAME=VALUE PROGRAM [ARGUMENT...]
set -eu

setting=$1
shift
if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then
    exec env "$setting" "$@"
fi
exec "$@"
