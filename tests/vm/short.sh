#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# In the first of two guests, as root: MPI messages whose payload NetPIPE checks; then the driver's own
# checks, which take the card away and back, and some kills.

set -eu

mpirun -n 2 NPopenmpi -i -u 64 -n 3 -o /dev/null
driver=$(dirname "$0")/../../build/driver/selftests
"$driver/calls"
"$driver/kills" 20
