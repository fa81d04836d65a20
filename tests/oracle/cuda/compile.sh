# Functions of the script `run` that compile: which files, for which architectures, what is out of date, a table of all.
# They read $here, $root, $scratch, $places, $flags and $nvcc of the script.
# shellcheck shell=bash disable=SC2154

# 13.0
toolkit_version() { "$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p'; }

# 70 75 ... 90 90a 100 100a ...: from Volta on, ascending, and with the letter a where this nvcc has it.
known_architectures() {
  local number
  "$nvcc" --list-gpu-code | sed -n 's/^sm_\([0-9]*\)$/\1/p' | sort -n | while read -r number; do
    (( number >= 70 )) || continue
    printf '%s\n' "$number"
    if (( number >= 90 )) && has_letter "$number"; then printf '%sa\n' "$number"; fi
  done
}

# nvcc lists no letters: it is asked to plan a compilation.
has_letter() {
  : >"$scratch/empty.cu"
  "$nvcc" --dryrun -cubin -gencode "arch=compute_${1}a,code=sm_${1}a" "$scratch/empty.cu" -o "$scratch/empty.cubin" >"$scratch/dryrun" 2>&1
}
knows_architecture() { known_architectures | grep -qx -- "$1"; }

# Of the project the program takes what includes nothing but the standard library: the recording, the probes, and what a format is.
device_sources() { find "$here" -name '*.cu' | sort; }
host_sources() {
  {
    find "$here" -name '*.cpp' ! -name '*_test.cpp' ! -name main.cpp ! -path '*/paper/*' ! -path '*/probes/*'
    printf '%s\n' "$root"/emu/oracle/{recording,probes}/*.cpp "$root"/emu/oracle/{dots/draft,identify/step_map}.cpp \
      "$root"/formats/{codec,format,format_table,value}.cpp
  } | sort
}
gpu_sources() { device_sources; host_sources; }

# device/wgmma.cu, emu/oracle/recording/batch.cpp: the name of a file below the folder of the program or of the project.
below() { local name=${1#"$here"/}; printf '%s\n' "${name#"$root"/}"; }
object_of() { local name; name=$(below "$2"); printf '%s/%s.o\n' "$1" "${name//\//__}"; }

# Out of date: missing, or older than its source, any header or table, or these scripts.
is_stale() {
  local object=$1 source=$2
  [[ ! -e $object || $source -nt $object ]] && return
  [[ -n $(find "$here" "$root/emu/oracle" "$root/formats" \( -name '*.hpp' -o -name '*.cuh' -o -name '*.def' -o -name '*.sh' -o -name run \) -newer "$object" -print -quit) ]]
}

wait_for_place() {
  while (( $(jobs -rp | wc -l) >= places )); do wait -n || true; done
}

# compile_all FOLDER COMPILER OPTION...: every line of FOLDER/sources to an object; shows what the compiler said of the first that fails.
compile_all() {
  local folder=$1 compiler=$2 source object failed=0
  shift 2
  while read -r source; do
    object=$(object_of "$folder" "$source")
    is_stale "$object" "$source" || continue
    wait_for_place
    printf 'compiling %s\n' "$(below "$source")" >&2
    rm -f "$object"
    { "$compiler" "${flags[@]}" "$@" -c "$source" -o "$object.new" >"$object.log" 2>&1 && mv "$object.new" "$object"; } &
  done <"$folder/sources"
  wait
  while read -r source; do
    object=$(object_of "$folder" "$source")
    [[ -e $object ]] && continue
    (( failed++ == 0 )) && head -40 "$object.log" >&2
    printf 'run: %s does not compile\n' "$(below "$source")" >&2
  done <"$folder/sources"
  (( failed == 0 )) || exit 2
}

# link_all FOLDER NAME COMPILER OPTION...: prints the path of the program. The files with main() are linked as they are, the others
# through an archive, so that only what is needed counts.
link_all() {
  local folder=$1 name=$2 compiler=$3 source whole=() parts=()
  shift 3
  while read -r source; do
    case $source in
      *.cu | */main.cpp) whole+=("$(object_of "$folder" "$source")") ;;
      *) parts+=("$(object_of "$folder" "$source")") ;;
    esac
  done <"$folder/sources"
  rm -f "$folder/libhost.a"
  ar rcs "$folder/libhost.a" "${parts[@]}"
  "$compiler" "$@" "${whole[@]}" "$folder/libhost.a" -o "$folder/$name" >&2 || { printf 'run: %s does not link\n' "$name" >&2; exit 2; }
  printf '%s\n' "$folder/$name"
}

# host_check: what runs on the CPU, compiled and linked as for a GPU but by $CXX and without a kernel. No symbol may be missing.
host_check() {
  local folder=$build/host compiler=${CXX:-c++} source objects=()
  command -v -- "$compiler" >/dev/null || fail 2 "no compiler $compiler: set CXX"
  mkdir -p "$folder"
  host_sources >"$folder/sources"
  compile_all "$folder" "$compiler" -O0 -fPIC -pthread
  while read -r source; do objects+=("$(object_of "$folder" "$source")"); done <"$folder/sources"
  "$compiler" -shared -pthread -Wl,-z,defs "${objects[@]}" -o "$folder/host.so" >&2 || fail 2 'what runs on the CPU does not link'
}

# Kernels of a PTX file that hold their instruction: those for other chips hold a trap instead.
rows_held() {
  awk '/^\.visible \.entry|^\.entry|^\t?\.weak \.entry/ { kernel = 1; held = 0; trap = 0 }
       kernel && /mma|cvt\./ { held = 1 }
       kernel && /[ \t]trap;/ { trap = 1 }
       kernel && /^}/ { rows += held && !trap; kernel = 0 }
       END { print rows + 0 }'
}

# compile_one ARCHITECTURE SOURCE ROW: writes a row of the table to the file ROW, and shows it.
compile_one() {
  local architecture=$1 source=$2 row=$3 keep=$3.keep started tenths status=ok rows=0
  mkdir -p "$keep"
  started=$(date +%s%N)
  if "$nvcc" "${flags[@]}" -cubin -gencode "arch=compute_$architecture,code=sm_$architecture" --keep --keep-dir "$keep" "$source" \
      -o "$keep/out.cubin" >"$keep/log" 2>&1; then
    rows=$(cat "$keep"/*.ptx | rows_held)
  else
    status=$(grep -m 1 -iE 'error|fatal' "$keep/log" || head -1 "$keep/log")
    status=${status//"$root"\//}
  fi
  tenths=$(( ($(date +%s%N) - started) / 100000000 ))
  printf '%s\t%s\t%d.%d\t%d\t%s\n' "sm_$architecture" "$(below "$source")" "$((tenths / 10))" "$((tenths % 10))" "$rows" "${status//$'\t'/ }" >"$row"
  cat "$row"
  rm -r "$keep"
}

# compile_check [OUT] [--arch A]: the table as it grows, and in OUT/compile.tsv by architecture; ends with 1 when a file does not compile.
compile_check() {
  local out='' only='' architecture architectures source row number=0 table
  local header=$'architecture\tfile\tseconds\trows\tresult'
  while (( $# > 0 )); do
    case $1 in
      --arch) (( $# > 1 )) || fail 2 '--arch needs a value such as 90a'; only=${2#sm_}; shift ;;
      -*) fail 2 "unknown option $1; see run --help" ;;
      *) [[ -z $out ]] || fail 2 "one folder is asked for, got '$out' and '$1'"; out=$1 ;;
    esac
    shift
  done
  [[ -z $out ]] || check_folder "$out"
  nvcc=$(find_nvcc)
  architectures=$(known_architectures)
  if [[ -n $only ]]; then
    grep -qx -- "$only" <<<"$architectures" || fail 2 "$nvcc knows $(tr '\n' ' ' <<<"$architectures")and not '$only'"
    architectures=$only
  fi
  mkdir -p "$scratch/rows"
  printf 'nvcc %s: %s\n' "$(toolkit_version)" "$(tr '\n' ' ' <<<"$architectures")"
  printf '%s\n' "$header"
  for architecture in $architectures; do
    while read -r source; do
      wait_for_place
      printf -v row '%s/rows/%05d' "$scratch" "$((number++))"
      compile_one "$architecture" "$source" "$row" &
    done < <(device_sources)
  done
  wait
  table=$scratch/compile.tsv
  { printf '%s\n' "$header"; cat "$scratch"/rows/*; } >"$table"
  if [[ -n $out ]]; then mkdir -p "$out" && cp "$table" "$out/compile.tsv"; fi
  awk -F '\t' 'NR > 1 { files++; seconds += $3; rows[$1] += $4; if (!($1 in seen)) { seen[$1] = 1; order[++n] = $1 } if ($5 != "ok") failed++ }
       END { for (i = 1; i <= n; ++i) printf "%s holds %d rows\n", order[i], rows[order[i]]
             printf "%d compilations, %d failed, %.0f seconds of one core\n", files, failed, seconds; exit failed > 0 }' "$table"
}
