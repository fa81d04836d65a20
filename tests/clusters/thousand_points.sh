#!/usr/bin/env bash
# What a Slurm array and GNU parallel add to a sweep of 1,000 points: wall time beside one process on the same processors, and the same
# rows, byte for byte. For a quiet machine, an hour or less.
# usage: thousand_points.sh PROGRAM [IMAGES [TASKS]]   IMAGES of a point, 4000 by default; TASKS of the array, by default those of the plan, which
# leaves each ten minutes: less work runs on one processor. Prints "skipped: " and why where Slurm cannot start.
set -uo pipefail
# shellcheck source=tests/clusters/one_node_slurm.sh
source "$(dirname "${BASH_SOURCE[0]}")/one_node_slurm.sh"

program=$(realpath "$1") images=${2:-4000} tasks=(${3:+--tasks "$3"})
why=$(lacking)
type -P parallel >/dev/null || why="GNU parallel is not installed"
[[ -z $why ]] || { echo "skipped: $why" && exit; }
scratch=$(mktemp -d)
export NUMEMU_CACHE=$scratch/cache
trap 'stop_slurm; rm -rf "$scratch"' EXIT
start_slurm "$scratch/slurm" || { echo "skipped: Slurm does not start here" && exit; }
fail() {
  echo "failed: $*"
  exit 1
}

mkdir "$scratch/work" && cd "$scratch/work" || exit
# 10 weights x 10 activations x 10 seeds of calibration samples.
cat >thousand.json <<TEXT
{"numemu_sweep": 1, "net": "lenet", "data": "glyphs", "eval_images": $images, "predictions": false, "seeds": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
 "grid": {"roles.weight.format": ["int8", "int7", "int6", "int5", "int4", "int3", "e4m3fn", "e5m2", "e3m2", "e2m3"],
          "roles.activation.format": ["int8", "int7", "int6", "int5", "int4", "e4m3fn", "e5m2", "e3m2", "e2m3", "e2m1"]}}
TEXT
seconds_of() {  # NAME COMMAND...: the wall time of a command
  local name=$1 begun=$EPOCHREALTIME
  "${@:2}" >"$name.log" 2>&1 || { tail -n 3 "$name.log"; fail "$name"; }
  awk -v b="$begun" -v e="$EPOCHREALTIME" 'BEGIN { printf "%.1f", e - b }'
}
slurm_sweep() { "$program" sweep thousand.json --out slurm --slurm "${tasks[@]}" --quiet && wait_for_jobs 3600; }

"$program" sweep thousand.json --out plan --dry-run >/dev/null 2>plan.log || { cat plan.log; fail "plan"; }  # generates the data set
one=$(seconds_of one "$program" sweep thousand.json --out one --quiet)
parallel=$(seconds_of parallel "$program" sweep thousand.json --out parallel --parallel --quiet)
array=$(seconds_of array slurm_sweep)
cmp one/rows.jsonl parallel/rows.jsonl || fail "rows of GNU parallel"
cmp one/rows.jsonl slurm/rows.jsonl || fail "rows of the array"
awk -v points="$(wc -l <one/rows.jsonl)" -v images="$images" -v cores="$(nproc)" -v one="$one" -v parallel="$parallel" -v array="$array" 'BEGIN {
  printf "%d points of %d images on %d processors, the same rows: one process %.1f s, GNU parallel %.1f s (%+.1f %%), Slurm %.1f s (%+.1f %%)\n",
         points, images, cores, one, parallel, 100 * (parallel / one - 1), array, 100 * (array / one - 1) }'
