#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# limited.sh -v|-n LIMIT PROGRAM [ARGUMENT...]: a rank with no more KiB of addresses, or descriptors, than that.
set -eu

ulimit "$1" "$2"
shift 2
exec "$@"
