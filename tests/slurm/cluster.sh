#!/usr/bin/env bash
# A real SLURM cluster of one node on loopback, for tests on Debian as root.
#   cluster.sh start STATE    install what is missing, start, wait until the node is idle
#   cluster.sh stop STATE     stop it and remove its configuration
#   cluster.sh try STATE      start and stop it: whether this machine can run one
# No accounting: $STATE/jobcomp.txt gets a line per finished job.
set -euo pipefail

action=$1
state=$2
host=$(hostname -s)

start() {
    if ! command -v slurmctld >/dev/null || ! command -v munged >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge
    fi
    mkdir -p "$state/state" "$state/spool" /etc/slurm
    local memory
    memory=$(($(awk '/MemTotal/ {print $2}' /proc/meminfo) / 1024 - 2000))
    cat >/etc/slurm/slurm.conf <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=2
JobAcctGatherParams=UsePss,OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
DefMemPerCPU=500
ReturnToService=2
MinJobAge=300
KillWait=2
GresTypes=gpu
StateSaveLocation=$state/state
SlurmdSpoolDir=$state/spool
SlurmctldPidFile=$state/slurmctld.pid
SlurmdPidFile=$state/slurmd.pid
SlurmctldLogFile=$state/slurmctld.log
SlurmdLogFile=$state/slurmd.log
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$state/jobcomp.txt
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$memory Gres=gpu:1 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
    echo "Name=gpu File=/dev/null" >/etc/slurm/gres.conf # a stand-in that can be given to jobs
    install -d -o munge -g munge -m 0755 /run/munge
    [ -f /run/munge/munged.pid ] && kill -0 "$(cat /run/munge/munged.pid)" 2>/dev/null || runuser -u munge -- /usr/sbin/munged
    (cd / && /usr/sbin/slurmctld && /usr/sbin/slurmd)
    for _ in $(seq 60); do
        [ "$(sinfo -h -o %T 2>/dev/null)" = idle ] && return
        sleep 1
    done
    echo "the node did not become idle:" >&2
    sinfo >&2
    exit 1
}

stop() {
    for daemon in slurmd slurmctld; do
        [ -f "$state/$daemon.pid" ] || continue
        local pid
        pid=$(cat "$state/$daemon.pid")
        kill "$pid" || continue
        # its port is free for the next cluster once it has ended
        for _ in $(seq 100); do
            [ -d "/proc/$pid" ] && ! grep -q "^State:.*Z" "/proc/$pid/status" || break
            sleep 0.2
        done
    done
    # with clients installed and a configuration but no controller, every question waits 10 s
    rm -f /etc/slurm/slurm.conf /etc/slurm/gres.conf
}

try() {
    trap stop EXIT
    start
}

"$action"
