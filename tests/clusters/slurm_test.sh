#!/usr/bin/env bash
# Sweeps and experiments as arrays of a real Slurm of one node: the bytes of one process after twenty kills of tasks, a node that is lost
# and resubmission.
# usage: slurm_test.sh PROGRAM      prints "skipped: " and why where this machine cannot start Slurm
set -uo pipefail
# shellcheck source=tests/clusters/one_node_slurm.sh
source "$(dirname "${BASH_SOURCE[0]}")/one_node_slurm.sh"

program=$(realpath "$1")
why=$(lacking)
[[ -z $why ]] || { echo "skipped: $why" && exit; }
scratch=$(mktemp -d)
export NUMEMU_CACHE=$scratch/cache
trap 'stop_slurm; rm -rf "$scratch"' EXIT
start_slurm "$scratch/slurm" || { echo "skipped: Slurm does not start here: $(tail -qn 1 "$scratch"/slurm/*.log "$scratch"/slurm/*.out | tr '\n' ' ')" && exit; }
fail() {
  echo "failed: $*"
  tail -qn 3 "$scratch"/work/*/slurm/*.log 2>/dev/null
  exit 1
}

work="$scratch/work/50% of a sweep"
mkdir -p "$work" && cd "$work" || exit
cat >'my sweep.json' <<'TEXT'
{"numemu_sweep": 1, "net": "lenet", "data": "glyphs", "eval_images": 200, "predictions": false,
 "grid": {"roles.weight.format": ["int8", "int7", "int6", "int5", "int4", "int3", "e4m3fn", "e5m2"],
          "roles.activation.format": [null, "int8", "e4m3fn"]}}
TEXT
"$program" sweep 'my sweep.json' --out one --threads 1 --quiet >/dev/null || fail "one process"
rows() { cat "$1"/rows*.jsonl 2>/dev/null | wc -l; }
all=$(rows one)

# A task or the last job of these scratch folders: Slurm's step is its parent.
tasks_of() { pgrep -f -- "sweep $work/my sweep.json --out $work/$1 " || true; }
submit() { "$program" sweep 'my sweep.json' --out "$1" --slurm --tasks 6 --sbatch job-name=kills --quiet >>submitted || fail "submission of $1"; }

# Twenty kills, at any time of any task or last job; the same command again whenever the jobs are through.
kills=0 rounds=0
while ((kills < 20)); do
  if [[ $(rows killed) == "$all" && -z $(squeue -h) ]]; then rm -rf killed; fi
  submit killed
  ((++rounds))
  until [[ -z $(squeue -h) ]]; do
    sleep "0.$((RANDOM % 8 + 1))"
    for pid in $(tasks_of killed); do
      if ((kills < 20)) && kill -9 "$pid" 2>/dev/null; then ((++kills)); fi
    done
  done
done
until [[ $(rows killed) == "$all" && -z $(squeue -h) ]]; do
  ((++rounds < 40)) || fail "40 submissions without an end"
  submit killed
  wait_for_jobs 300 || fail "jobs that do not end"
done
cmp one/rows.jsonl killed/rows.jsonl || fail "rows after kills"
ls killed/rows.*.jsonl >/dev/null 2>&1 && fail "rows of shards beside those of the whole"
[[ -s killed/report.html ]] || fail "no report"
echo "$kills kills, $rounds submissions: the same $all rows"

# A node that is lost: its tasks are queued again by Slurm itself.
submit lost
until (($(rows lost) >= 3)); do sleep 0.2; done
scontrol update nodename="$(hostname -s)" state=down reason=test
sleep 1
scontrol update nodename="$(hostname -s)" state=resume 2>/dev/null  # it may have come back by itself (ReturnToService=2)
squeue -h | grep -q . || fail "a lost node leaves no job"
wait_for_jobs 300 || fail "jobs of a lost node that do not end"
cmp one/rows.jsonl lost/rows.jsonl || fail "rows of a lost node"
echo "a lost node: the same rows"

# A second array of the same folder is refused while the first is there.
submit busy
"$program" sweep 'my sweep.json' --out busy --slurm --tasks 6 2>refused && fail "two arrays of one folder"
grep -q "are queued or running" refused || fail "$(<refused)"
wait_for_jobs 300

# Trials of an experiment, those of a second set in a second round.
"$program" experiment embeddings --size smoke --out alone --quiet >/dev/null || fail "experiment"
"$program" experiment embeddings --size smoke --out trials --slurm --tasks 3 --rounds 2 --quiet >/dev/null || fail "experiment --slurm"
wait_for_jobs 300 || fail "jobs of an experiment that do not end"
cmp alone/trials.jsonl trials/trials.jsonl || fail "trials"
cmp alone/experiment.json trials/experiment.json || fail "experiment.json"
echo "an experiment: the same trials and conclusion"
