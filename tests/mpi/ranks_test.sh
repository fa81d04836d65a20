#!/usr/bin/env bash
# ranks_test.sh PROGRAM KILLS: a training over 2, 3 and 4 processes of Open MPI leaves the bytes of one process, also after KILLS kills
# of single ranks, each followed by the same command again. Status 77: there is no MPI here.
set -euo pipefail
program=$(realpath "$1") kills=$2
if ! type -P mpirun >/dev/null || ! [[ -e ${program%/*}/libnumemu_mpi.so ]]; then
  echo "skipped: mpirun or ${program%/*}/libnumemu_mpi.so is not here"
  exit 77
fi
# Containers run as root, and have fewer cores than ranks.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMP_NUM_THREADS=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
# 1,400 noisy images of four classes as numpy's arrays.
python3 - <<'PYTHON'
import random, struct
draw = random.Random(1)
def write(path, kind, shape, data):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
labels = [draw.randrange(4) for _ in range(1400)]
pixels = [draw.gauss(label / 4, 1) for label in labels for _ in range(144)]
write("x.npy", "<f4", "(1400, 1, 12, 12)", struct.pack("<%df" % len(pixels), *pixels))
write("y.npy", "<i8", "(1400,)", struct.pack("<1400q", *labels))
PYTHON
train=("$program" train --net mlp --data npy:x=x.npy,y=y.npy,test=200 --epochs 3 --batch 64 --workers 4 --micro-batches 2 --save-every 5 --quiet)

same() {  # same FOLDER: the files of the run of one process
  local file
  for file in metrics.jsonl state.safetensors "$(cd one && ls *-*.safetensors)"; do cmp "one/$file" "$1/$file"; done
}

refused() {  # refused WORDS FILE: the last command ended with status 2 and these words, without the file
  if [[ $status != 2 ]] || ! grep -q "$1" words || [[ -e $2 ]]; then
    echo "failed: status $status, $2: $(<words)"
    exit 1
  fi
}

"${train[@]}" --out one >/dev/null
for ranks in 2 3 4; do
  mpirun -n "$ranks" "${train[@]}" --out "ranks$ranks" >/dev/null
  same "ranks$ranks"
done

# A recipe whose operands are counted.
echo '{"numemu_recipe": 1, "roles": {"activation": {"format": "e4m3", "scale": "none"}, "gradient": {"format": "e5m2"}}}' >fp8.json
"${train[@]}" --recipe fp8.json --out one_fp8 >/dev/null
mpirun -n 3 "${train[@]}" --recipe fp8.json --out ranks_fp8 >/dev/null
for file in metrics.jsonl state.safetensors; do cmp "one_fp8/$file" "ranks_fp8/$file"; done

# What one rank finds wrong, and what all do: status 2 and a line, nothing written.
status=0
mpirun -n 3 "${train[@]}" --out none --optimizer nosuch >words 2>&1 || status=$?
refused "numemu: .*nosuch" none
status=0
mpirun -n 5 "${train[@]}" --out none >words 2>&1 || status=$?
refused "workers: expected at least as many as there are ranks, 5" none/state.safetensors

done=0
for ((kill = 0; kill < kills; )); do
  mpirun -n 3 "${train[@]}" --out killed >/dev/null 2>&1 &
  job=$!
  sleep "0.$((RANDOM % 9 + 1))"
  victims=($(pgrep -P "$job" || true))
  if ((${#victims[@]})); then
    kill -9 "${victims[RANDOM % ${#victims[@]}]}" 2>/dev/null && kill=$((kill + 1)) || true
  fi
  if wait "$job"; then  # it was finished before the kill
    done=1
    same killed
    rm -rf killed
  fi
done
mpirun -n 2 "${train[@]}" --out killed >/dev/null
same killed
echo "$kills ranks killed: the same bytes"
