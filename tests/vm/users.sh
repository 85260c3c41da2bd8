#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# users.sh SECONDS CALLS: in a guest, as root: the contract between users of a card line by line, random calls, atomic adds
# that are counted while the card is reset, and two users who do everything wrong beside a third one.

set -eu

driver=$(dirname "$0")/../../build/driver/selftests
"$driver/contract"
"$driver/fuzz" "$2"
"$driver/adds" -r 2 500
"$driver/abuse" "$1"
