#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# faults.sh THREADS KILLS CALLS SECONDS: in the first of two guests whose kernel looks for faults, as root: MPI messages whose
# payload NetPIPE checks, and all that the driver's programs do to it. What the kernel finds, `velo vm` tells.

set -eu

driver=$(realpath "$(dirname "$0")/../../build/driver/selftests")
mpirun -n 2 NPopenmpi -i -u 1024 -n 3 -o /dev/null
"$driver/calls"
"$driver/contract"
"$driver/threads" "$1"
"$driver/kills" "$2"
# Meanwhile a process reads the files of the card all the time. If it has ended by itself, kill fails.
cd /sys/class/velo/velo0
while :; do
    for name in contexts pages lines_free resets links ring_patience; do
        read -r _ <$name
    done
done 2>/dev/null &
"$driver/fuzz" "$3"
"$driver/adds" -r 2 500
"$driver/abuse" -r "$4"
kill $!
