#!/usr/bin/env bash
# Sweeps and experiments as tasks of GNU parallel: the bytes of one process, with tasks that are killed.
# usage: parallel_test.sh PROGRAM      prints "skipped: " and why where GNU parallel is not installed
set -uo pipefail

program=$(realpath "$1")
[[ $(parallel --version 2>/dev/null) == "GNU parallel"* ]] || { echo "skipped: GNU parallel is not installed (Debian: parallel)" && exit; }
scratch=$(mktemp -d)
export NUMEMU_CACHE=$scratch/cache
trap 'rm -rf "$scratch"' EXIT
fail() {
  echo "failed: $*"
  tail -qn 3 ./*/parallel/*.log 2>/dev/null
  exit 1
}

work="$scratch/it's {} 50%"
mkdir -p "$work" && cd "$work" || exit
cat >'my sweep.json' <<'TEXT'
{"numemu_sweep": 1, "net": "lenet", "data": "glyphs", "eval_images": 100, "predictions": false,
 "grid": {"roles.weight.format": ["int8", "int6", "int4", "e4m3fn"], "roles.activation.format": [null, "int8"]}}
TEXT
"$program" sweep 'my sweep.json' --out one --threads 1 --quiet >/dev/null || fail "one process"
"$program" sweep 'my sweep.json' --out tasks --parallel --tasks 3 --quiet >out || fail "tasks"
[[ $(<out) == tasks/report.html ]] || fail "printed $(<out)"
cmp one/rows.jsonl tasks/rows.jsonl || fail "rows"
"$program" sweep 'my sweep.json' --out tasks --parallel --quiet >out || fail "nothing left to do"

# Every task is killed as soon as it is seen: the rest is computed at the end.
"$program" sweep 'my sweep.json' --out killed --parallel --tasks 4 --quiet >out 2>err &
kills=0
while kill -0 $! 2>/dev/null; do
  for pid in $(pgrep -f -- "--out $scratch/.*/killed .*--shard" | head -1); do
    if ((kills < 3)) && [[ $(ps -o comm= -p "$pid") == numemu* ]] && kill -9 "$pid" 2>/dev/null; then ((++kills)); fi
  done
  sleep 0.3
done
wait $! || fail "killed tasks: $(<err)"
grep -q "tasks failed" err || fail "no word of $kills kills"
cmp one/rows.jsonl killed/rows.jsonl || fail "rows after kills"

"$program" experiment embeddings --size smoke --out alone --quiet >/dev/null || fail "experiment"
"$program" experiment embeddings --size smoke --out trials --parallel --tasks 3 --quiet >/dev/null || fail "experiment --parallel"
cmp alone/trials.jsonl trials/trials.jsonl || fail "trials"
cmp alone/experiment.json trials/experiment.json || fail "experiment.json"
echo "$kills kills: the same rows and trials"
