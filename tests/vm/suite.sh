#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# In a guest: each test of some sources, as a process of its own.
#
#   suite.sh PROGRAM SECONDS SOURCE... [-- TEST...]
#                           SECONDS: of each test, at most. TEST...: those that are left out.

set -u
# The transport relies on full rings that wait, as those of the simulated cluster do.
[[ ${VELO_NETWORK-} == nic* ]] && echo 0 >/sys/class/velo/velo0/ring_patience
# A test opens all contexts of a card, and each port has several files.
ulimit -n "$(ulimit -Hn)"

program=$1 limit_s=$2 sources=() failed=()
shift 2
while (($#)) && [[ $1 != -- ]]; do
    sources+=("$1")
    shift
done
mapfile -t names < <(sed -n 's/^TEST(\([a-z0-9_]*\)).*/\1/p' "${sources[@]}")
((${#names[@]})) || {
    echo "suite.sh: there are no tests in ${sources[*]}"
    exit 2
}
declare -A counts=([passed]=0 [skipped]=0 [failed]=0)
for name in "${names[@]}"; do
    [[ " ${*:2} " == *" $name "* ]] && continue
    begun=$SECONDS
    said=$(timeout -s KILL "$limit_s" "$program" "$name" 2>&1)
    code=$?
    case $code in
    0) outcome=passed ;;
    77) outcome=skipped ;;
    *) outcome=failed failed+=("$name") ;;
    esac
    counts[$outcome]=$((counts[$outcome] + 1))
    echo "$outcome $name $((SECONDS - begun)) s"
    # The runner's own lines begin with a bracket.
    [[ $outcome == failed ]] && printf '%s\n' "$said" "exit code $code" | grep -v '^\[' | tail -n 12
done
echo "${counts[passed]} passed, ${counts[skipped]} skipped, ${counts[failed]} failed in $SECONDS s: ${failed[*]-}"
((${#failed[@]} == 0 && counts[passed] > 0))
