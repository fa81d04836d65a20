# Functions of the script `run` that keep the evidence of a run: the GPU, the toolkit, the machine code of every kernel.
# They read $here, $root, $scratch, $flags and $nvcc of the script.
# shellcheck shell=bash disable=SC2154

# write_evidence FOLDER PROGRAM ARCHITECTURE SECONDS
write_evidence() {
  local folder=$1
  mkdir -p "$folder"
  { describe_gpu; printf 'seconds of the run\t%s\n' "$4"; } >"$folder/gpu.txt"
  describe_toolkit "$3" >"$folder/toolkit.txt"
  write_sass "$folder" "$2"
}

# Name, driver and clocks; no serial number, no UUID.
describe_gpu() {
  if ! command -v nvidia-smi >/dev/null; then
    printf 'nvidia-smi is not installed; the program itself names GPU and driver in the column "source"\n'
    return
  fi
  local field
  for field in name driver_version vbios_version compute_cap memory.total ecc.mode.current mig.mode.current power.limit clocks.sm clocks.mem \
      clocks.max.sm clocks.max.mem temperature.gpu; do
    printf '%s\t%s\n' "$field" "$(nvidia-smi --query-gpu="$field" --format=csv,noheader 2>&1 | tr '\n' ';')"
  done
  nvidia-smi | head -20 | sed -n 's/^.*\(Driver Version: [0-9.]*\).*\(CUDA Version: [0-9.]*\).*$/\1, \2/p'
}

describe_toolkit() {
  "$nvcc" --version
  printf 'built for sm_%s with: %s\n' "$1" "${flags[*]//"$root"/.}"
  describe_host_compiler
  uname -srm
  if command -v git >/dev/null && git -C "$root" rev-parse HEAD >/dev/null 2>&1; then
    printf 'revision %s, %s files changed\n' "$(git -C "$root" rev-parse HEAD)" "$(git -C "$root" status --porcelain -- "$here" | wc -l)"
  fi
}

# nvcc does not say which host compiler it calls: the plan of a compilation does.
describe_host_compiler() {
  local host
  host=$("$nvcc" --dryrun -c -x cu /dev/null -o /dev/null 2>&1 | sed -nE 's/^#\$ "?([^" ]+)"? .*-E -x c\+\+.*/\1/p' | head -1)
  printf 'host compiler %s: %s\n' "$host" "$("$host" --version 2>&1 | head -1)"
}

find_cuobjdump() {
  local beside
  beside=$(dirname -- "$nvcc")/cuobjdump
  if [[ -x $beside ]]; then printf '%s\n' "$beside"; else command -v cuobjdump; fi
}

# sass.txt.gz: the instructions of each kernel; sass.tsv: which of them multiply or convert. cuobjdump calls nvdisasm, which it looks for
# in PATH.
write_sass() {
  local folder=$1 program=$2 cuobjdump
  printf 'reading the machine code of every kernel (a minute or two)\n'
  if ! cuobjdump=$(find_cuobjdump) || ! PATH=$(dirname -- "$cuobjdump"):$PATH "$cuobjdump" -sass "$program" >"$scratch/sass" 2>"$scratch/sass.log"; then
    { printf 'no machine code: cuobjdump %s\n' "${cuobjdump:+failed}${cuobjdump:-is not installed}"; cat "$scratch/sass.log" 2>/dev/null || true; } \
      >"$folder/sass.tsv"
    return
  fi
  kernel_lines <"$scratch/sass" >"$scratch/sass.txt"
  gzip -9n <"$scratch/sass.txt" >"$folder/sass.txt.gz"  # megabytes of text otherwise
  kernel_table <"$scratch/sass.txt" >"$folder/sass.tsv"
}

# Of cuobjdump's output the names of kernels and their instructions, without encodings and padding; the addresses
# stay, for branches name them.
kernel_lines() {
  sed -nE -e 's/^[[:space:]]*Function : (.*)$/\n\1/p' \
    -e '/\/\*[0-9a-f]+\*\/[[:space:]]+NOP/d' -e 's/^[[:space:]]*\/\*([0-9a-f]+)\*\/[[:space:]]+([^;]*;).*$/  \1 \2/p'
}

# kernel, what multiplies or converts in it with counts (HGMMA.64x8x16.F32 x1), number of all instructions. A kernel that holds a trap
# instead of its instruction belongs to another chip and is left out.
kernel_table() {
  awk 'function flush(  i) {
         if (kernel == "" || trap) return
         line = ""
         for (i = 1; i <= kinds; ++i) line = line (i > 1 ? ", " : "") order[i] " x" count[order[i]]
         printf "%s\t%s\t%d\n", kernel, kinds ? line : "-", all
       }
       BEGIN { print "kernel\tinstructions that multiply, add or convert\tall instructions" }
       /^[^ ]/ { flush(); kernel = $1; trap = kinds = all = 0; delete count; next }
       NF > 1 {
         op = $2 ~ /^@/ ? $3 : $2
         sub(/;$/, "", op)
         ++all
         if (op ~ /TRAP/) trap = 1
         if (op ~ /^(H|HG|QG|Q|O|I|IG|B|BG|D|F)MMA|^UTC[A-Z]*MMA|^F2F|^[HFD](ADD|MUL|FMA)2?($|\.[^M])/) if (count[op]++ == 0) order[++kinds] = op
       }
       END { flush() }'
}
