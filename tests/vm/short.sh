#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# In the first of two guests, as root: the driver's own checks and some kills, then MPI messages whose
# payload NetPIPE checks.

set -eu

driver=$(dirname "$0")/../../build/driver/test
"$driver/calls"
"$driver/kills" 20
mpirun -n 2 NPopenmpi -i -u 64 -n 3 -o /dev/null
