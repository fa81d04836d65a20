# shellcheck shell=bash
# One node of Slurm in a folder of its own, for tests that source this: start_slurm FOLDER, stop_slurm.

# The daemons stand in /usr/sbin, which is not on everybody's PATH.
PATH=$PATH:/usr/sbin:/sbin

# lacking: what this machine lacks for it; nothing where it can start.
lacking() {
  local program
  for program in munged slurmctld slurmd sbatch squeue scancel scontrol python3; do
    type -P "$program" >/dev/null || { echo "$program is not installed (Debian: slurmctld slurmd slurm-client munge)" && return; }
  done
}

# free_port: of this machine; nobody holds it, so a second test may take it before the daemon does.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# start_slurm FOLDER: munge, controller and node; returns 1 where they do not come up within a minute.
start_slurm() {
  slurm=$1
  mkdir -p "$slurm"/{state,spool,munge}
  chmod 755 "$slurm" && chmod 700 "$slurm/munge"
  head -c 128 /dev/urandom >"$slurm/munge/key" && chmod 400 "$slurm/munge/key"
  export SLURM_CONF=$slurm/slurm.conf
  local host me
  host=$(hostname -s) me=$(id -un)
  cat >"$SLURM_CONF" <<TEXT
ClusterName=numemu
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$me
SlurmdUser=$me
AuthType=auth/munge
AuthInfo=socket=$slurm/munge/socket
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_min_interval=100000,batch_sched_delay=0
KillWait=2
MinJobAge=2
ReturnToService=2
InactiveLimit=0
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$(awk '/^MemTotal:/ { print int($2 / 1024) - 100 }' /proc/meminfo) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
TEXT
  printf 'CgroupPlugin=cgroup/v1\n' >"$slurm/cgroup.conf"
  munged --foreground --force --socket="$slurm/munge/socket" --key-file="$slurm/munge/key" --pid-file="$slurm/munge/pid" \
    --log-file="$slurm/munge/log" --seed-file="$slurm/munge/seed" >"$slurm/munged.out" 2>&1 &
  daemons=($!)
  slurmctld -D -i >"$slurm/slurmctld.out" 2>&1 &
  daemons+=($!)
  slurmd -D >"$slurm/slurmd.out" 2>&1 &
  daemons+=($!)
  local i
  for ((i = 0; i < 120; ++i)); do
    [[ $(sinfo -h -o %t 2>/dev/null) == idle ]] && return
    sleep 0.5
  done
  return 1
}

# stop_slurm: every job, then the daemons that start_slurm started.
stop_slurm() {
  scancel --me 2>/dev/null
  kill "${daemons[@]}" 2>/dev/null
  wait "${daemons[@]}" 2>/dev/null
}

# wait_for_jobs SECONDS: until no job is queued or running.
wait_for_jobs() {
  local i
  for ((i = 0; i < 4 * $1; ++i)); do
    [[ -z $(squeue -h 2>&1) ]] && return
    sleep 0.25
  done
  return 1
}
