#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# limited.sh KIB PROGRAM [ARGUMENT...]: a rank with no more addresses than that.
set -eu

ulimit -v "$1"
shift
exec "$@"
