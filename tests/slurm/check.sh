#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Jobs of Open MPI that Slurm starts use velo: in one node's shared memory, and between two nodes. This machine is both
# nodes, with two slurmd on the loopback device of a network of its own.
#
#   check.sh VELO PROGRAM TEST   VELO: the command; PROGRAM: velo-mpi-tests; TEST: one of its tests, for 2 ranks

set -euo pipefail

skip() {
    echo "skipped: $*"
    exit 77
}

if [[ ${1-} != --inside ]]; then
    for program in slurmctld slurmd munged srun; do
        PATH=$PATH:/usr/sbin command -v "$program" >/dev/null ||
            skip "Slurm is not there: apt-get install slurm-wlm munge (Debian)"
    done
    ((EUID == 0)) || skip "only root can start slurmd"
    readonly apart=(unshare --net --mount --pid --fork --kill-child --mount-proc)
    "${apart[@]}" true 2>/dev/null || skip "this machine permits no namespaces"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    # With the last process of the namespace all are gone, whatever ends us.
    "${apart[@]}" "$0" --inside "$work" "$@" </dev/null && exit
    code=$?
    tail -n 30 "$work"/*.log
    exit "$code"
fi

readonly work=$2 velo=$3 program=$4 test=$5
PATH=$PATH:/usr/sbin:/sbin
mount -t tmpfs -o mode=1777 tmpfs /dev/shm # What is left there is of these jobs.
ip link set lo up
# Slurm asks for the addresses of an interface; of loopback's own the C library tells none.
ip address add 192.0.2.1/32 dev lo
# Slurm's files and its nodes' are in folders that only root writes to.
mkdir -m 755 "$work"/{state,spool-a,spool-b,munge}
host=$(hostname -s)
cat >"$work/slurm.conf" <<END
ClusterName=velo
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool-%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
NodeName=a NodeHostname=$host NodeAddr=127.0.0.1 Port=17001 CPUs=2
NodeName=b NodeHostname=$host NodeAddr=127.0.0.1 Port=17002 CPUs=2
PartitionName=all Nodes=a,b Default=YES State=UP
END
export SLURM_CONF=$work/slurm.conf
(umask 077 && head -c 1024 /dev/urandom >"$work/munge/key")
chown -R "$(id -u):$(id -g)" "$work/munge"
munged --force --key-file "$work/munge/key" --socket "$work/munge/socket" --pid-file "$work/munge/pid" \
    --log-file "$work/munge/munged.log" --seed-file "$work/munge/seed" 2>"$work/munged.log"
slurmctld
# On one machine the PMIx of each node needs a folder of its own.
for node in a b; do
    mkdir -m 755 "$work/tmp-$node" "$work/conf-$node"
    cp "$SLURM_CONF" "$work/conf-$node/"
    echo "PMIxCliTmpDirBase=$work/tmp-$node" >"$work/conf-$node/mpi.conf"
    slurmd -N "$node" -f "$work/conf-$node/slurm.conf"
done

for ((i = 0; i < 60; i++)); do
    idle=$(timeout 10 sinfo -h -t idle -o %D 2>/dev/null || true)
    [[ $idle != 2 ]] || break
    sleep 1
done
[[ $idle == 2 ]] || { echo "the nodes are not idle"; exit 1; }
[[ $(timeout 10 srun --mpi=list 2>&1) == *pmix* ]] || skip "this Slurm has no PMIx"

# What a user types. Open MPI says which layer it takes.
setting=$("$velo" env)
eval "$setting"
export OMPI_MCA_mtl_base_verbose=10
check() {
    local said
    said=$(timeout 120 srun --mpi=pmix "$@" "$program" "$test" 2>&1) || { printf '%s\n' "$said"; exit 1; }
    # Each rank says so.
    if (($(grep -c 'component velo selected' <<<"$said") != 2)); then
        printf '%s\n' "$said" "not both ranks took mtl/velo"
        exit 1
    fi
    echo "srun --mpi=pmix $*: over velo"
}
check -N 1 -n 2
VELO_OFI_SECRET=$(od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n')
export VELO_NETWORK=ofi VELO_OFI_SECRET
check -N 2 -n 2 --ntasks-per-node 1
left=$(find /dev/shm -name 'velo.*')
[[ -z $left ]] || { echo "left behind: $left"; exit 1; }
