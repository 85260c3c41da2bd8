#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tries.sh SECONDS COMMAND...: run a job that spawns or meets others; three times at most, if it hangs.
# Open MPI 4.1's mpirun at times loses what one job asks of another: PMIx_Lookup() does not return then,
# over Open MPI's own transports neither. A job that fails is not tried again.
set -u

seconds=$1
shift
for _ in 1 2 3; do
    timeout -k 15 "$seconds" "$@"
    status=$?
    [ "$status" = 124 ] || [ "$status" = 137 ] || exit "$status"
done
exit "$status"
