#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# arm64.sh CALLS: in a guest that is an AArch64 machine, as root: all calls of the driver, the contract between users line
# by line, random calls.

set -eu

driver=$(dirname "$0")/../../build/driver-arm64/selftests
"$driver/calls"
"$driver/contract"
"$driver/fuzz" "$1"
