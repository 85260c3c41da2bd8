#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# In the first of two guests, as root: the driver under kills and wrong calls, for the night.

set -eu

driver=$(dirname "$0")/../../build/driver/selftests
"$driver/kills" 500
"$driver/fuzz" 1000000
