#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# faults.sh KILLS CALLS SECONDS: in the first of two guests whose kernel looks for faults, as root: MPI messages whose
# payload NetPIPE checks, and all that the driver's programs do to it. What the kernel finds, `velo vm` tells.

set -eu

driver=$(dirname "$0")/../../build/driver/selftests
mpirun -n 2 NPopenmpi -i -u 1024 -n 3 -o /dev/null
"$driver/calls"
"$driver/contract"
"$driver/threads" 20000
"$driver/kills" "$1"
"$driver/fuzz" "$2"
"$driver/adds" -r 2 500
"$driver/abuse" -r "$3"
