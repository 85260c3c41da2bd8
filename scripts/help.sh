# SPDX-License-Identifier: Apache-2.0
#
# For the scripts of this folder, which source it: with --help as the first argument a script prints what stands at its
# top and ends.

# shellcheck shell=bash
if [[ ${1-} == --help || ${1-} == -h ]]; then
    sed -n '4,/^$/s/^# \{0,1\}//p' "$0"
    exit 0
fi
