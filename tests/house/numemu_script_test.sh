#!/usr/bin/env bash
# Proves the promises of ./numemu on a small scratch project (its path has a space) with a recording apt-get.
# usage: numemu_script_test.sh [--self-test] ROOT      --self-test: succeeds if every one of some broken scripts is caught
# shellcheck disable=SC2016,SC2317  # text for other shells; functions called through `expect`
set -uo pipefail

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"

if [[ $1 == --self-test ]]; then
  root=$2
  slips=('s/ --no-remove//' 's/exec "$program" "$@"/cd "$root" \&\& &/' 's/if fresh; then return; fi/return/' 's/^say() {/& return;/')
  for slip in "${slips[@]}"; do
    mkdir -p "$scratch/broken"
    cp "$root/CMakePresets.json" "$scratch/broken"
    sed "$slip" "$root/numemu" >"$scratch/broken/numemu"
    chmod +x "$scratch/broken/numemu"
    if cmp -s "$root/numemu" "$scratch/broken/numemu" || FIRST_ONLY=yes "$0" "$scratch/broken" >"$scratch/said" 2>&1; then
      echo "not caught: $slip"
      exit 1
    fi
    echo "caught $slip: $(grep ^FAIL "$scratch/said")"
  done
  exit 0
fi
root=$1
project="$scratch/a checkout"
tools=$scratch/tools
failures=0

expect() { # expect WHAT COMMAND...: the command succeeds
  local what=$1
  shift
  if "$@"; then echo "ok    $what"; else echo "FAIL  $what" && failures=$((failures + 1)); fi
  # One failed expectation is enough to catch a broken script.
  if [[ ${FIRST_ONLY:-} == yes ]] && ((failures)); then exit 1; fi
}
equal() { [[ $1 == "$2" ]] || { printf '      got:  %s\n      want: %s\n' "$1" "$2" && false; }; }
contains() { [[ $1 == *"$2"* ]] || { printf '      got:  %s\n      want: ...%s...\n' "$1" "$2" && false; }; }

# The programs are copied shell scripts, so that nothing here waits for a compiler.
make_project() {
  mkdir -p "$project/cmake" "$project/cli" "$tools"
  cp "$root/numemu" "$root/CMakePresets.json" "$project"
  cat >"$project/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.25)
project(scratch NONE)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/cli)
function(program name source)
  add_custom_command(OUTPUT ${name}_built DEPENDS ${PROJECT_SOURCE_DIR}/cli/${source} VERBATIM
    COMMAND sh -n ${PROJECT_SOURCE_DIR}/cli/${source}
    COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_SOURCE_DIR}/cli/${source} cli/${name}
    COMMAND sh -c "echo ${name} >> '${PROJECT_SOURCE_DIR}/../builds'"
    COMMAND sh -c "echo 1.5 0.25 emu/net/CMakeFiles/x.dir/ops/y.cpp.o >> \"$NUMEMU_COMPILE_TIMES\""
    COMMAND ${CMAKE_COMMAND} -E touch ${name}_built)
  add_custom_target(${name} ALL DEPENDS ${name}_built)
endfunction()
add_custom_target(numemu_launcher)
program(numemu-numbers program)
program(numemu-zz other)
enable_testing()
add_test(NAME one COMMAND sh -c "echo 'skipped: one: no such silicon'; exit 77")
set_tests_properties(one PROPERTIES LABELS fast SKIP_RETURN_CODE 77)
TEXT
  printf '#!/bin/sh\necho "$PWD|$*"\nexit 7\n' >"$project/cli/program"
  printf '#!/bin/sh\necho "other|$*"\n' >"$project/cli/other"
  chmod +x "$project/cli"/*
  printf '// NUMEMU_COMMAND(GROUP, NAME, HELP): rows.\nNUMEMU_COMMAND(numbers, formats, "List")\nNUMEMU_COMMAND(zz, draw, "Draw")\n' >"$project/cli/commands.def"
  printf 'run  cmake  cmake\nreport  zz-charts  zz-draw|zz-paint\ntest  zz-header  zz/no.h\n' >"$project/cmake/packages.txt"
  # An apt-get that notes its line and provides the command; a sudo that steps aside.
  printf '#!/bin/sh\necho "$DEBIAN_FRONTEND $*" >>%q\n[ "$1" = install ] && { [ -e %q ] || exit 100; : >%q; chmod +x %q; }\n[ "$1" = update ] && : >%q\nexit 0\n' \
    "$scratch/apt.log" "$scratch/lists" "$tools/zz-paint" "$tools/zz-paint" "$scratch/lists" >"$tools/apt-get"
  printf '#!/bin/sh\nexec "$@"\n' >"$tools/sudo"
  chmod +x "$tools"/*
  PATH=$tools:$PATH
}

builds() { grep -cx "${1:-numemu-numbers}" "$scratch/builds"; }

make_project
unset CI CXX CXXFLAGS
cd "$scratch" || exit 1

expect "first call builds; arguments, working folder and exit status pass through" \
  equal "$("$project/numemu" formats 'a b' 2>/dev/null; echo $?)" "$scratch|formats a b"$'\n'7
expect "talk goes to stderr only" equal "$("$project/numemu" eval 2>/dev/null)" "$scratch|eval"
expect "an unchanged tree is not built again" equal "$(builds)" 1
expect "the programs of other commands are not built" test ! -e "$project/build/release/cli/numemu-zz"
expect "a command runs in the program of its group" equal "$("$project/numemu" draw 'a b' 2>/dev/null)" "other|draw a b"
printf '#!/bin/sh\necho drawn\n' >"$project/cli/other"
"$project/numemu" formats >/dev/null 2>&1
expect "a source of another program is not built" equal "$(builds numemu-zz)" 1
expect "it is when a command needs it" equal "$("$project/numemu" draw 2>/dev/null)" drawn
"$project/numemu" formats >/dev/null 2>&1
"$project/numemu" draw >/dev/null 2>&1
expect "taking turns builds nothing again" equal "$(builds numemu-zz) $(builds)" "2 1"
ln -s "$project/numemu" "$scratch/link"
expect "works through a symbolic link" equal "$(./link units 2>&1)" "$scratch|units"
printf '#!/bin/sh\necho changed\n' >"$project/cli/program"
expect "a changed source is built" equal "$("$project/numemu" units 2>/dev/null)" changed
: >"$project/cli/added"
"$project/numemu" units >/dev/null 2>&1
: >"$scratch/mark"
rm "$project/cli/added"
"$project/numemu" units >/dev/null 2>&1
expect "a removed file is noticed" test "$project/build/release/stamp.numemu-numbers.run" -nt "$scratch/mark"

install='apt-get install -y --no-install-recommends --no-remove --no-upgrade zz-charts'
output=$("$project/numemu" --no-install sweep 2>/dev/null)
status=$?
expect "--no-install stops with exit 2" equal "$status" 2
expect "--no-install prints the apt line" contains "$output" "$install"
expect "--no-install installs nothing" test ! -e "$scratch/apt.log"
expect "a command that needs no charts runs without them" equal "$("$project/numemu" --no-install units 2>/dev/null)" changed
output=$("$project/numemu" sweep 2>&1)
expect "says what it installs" contains "$output" "installing with apt: zz-charts"
line="noninteractive ${install#apt-get }"
expect "asks apt for exactly that, fetching lists only after a refusal" \
  equal "$(cat apt.log)" "$line"$'\nnoninteractive update\n'"$line"
expect "an alternative of the check is enough" equal "$("$project/numemu" --no-install sweep 2>&1)" changed

printf 'if\n' >"$project/cli/program"
output=$("$project/numemu" units 2>&1)
status=$?
expect "a failing build exits with 3" equal "$status" 3
expect "a failing build shows the error" contains "$output" "FAILED:"
expect "a failing build names its log" contains "$output" "$project/build/release/build.log"

printf '#!/bin/sh\necho again\n' >"$project/cli/program"
before=$(builds)
for i in 1 2 3 4; do "$project/numemu" units >"call.$i" 2>/dev/null & done
wait
expect "four calls at once all run" equal "$(cat call.? | tr '\n' ' ')" "again again again again "
expect "four calls at once build once" equal "$(builds)" $((before + 1))

printf '#!/bin/sh\n' >"$project/cli/program"
output=$("$project/numemu" test 2>/dev/null)
expect "tests say where compile time went, by floor" contains "$output" "1.8 s     1 objects  emu/net"
expect "tests name the slowest objects by source" contains "$output" "1.75 s emu/net/ops/y.cpp"
expect "tests say aloud what was skipped" contains "$output" $'\nskipped: one: no such silicon\n'
jobs() { NUMEMU_MEMINFO=$scratch/meminfo bash -c "$(sed -n '/^jobs()/,/^}/p' "$project/numemu")"$'\njobs'; }
printf 'MemTotal: 1000000 kB\nMemAvailable: 900000 kB\n' >meminfo
expect "one compiler at a time where the memory is short" equal "$(jobs)" 1
printf 'MemAvailable: 300000 kB\n' >meminfo
expect "at least one compiler" equal "$(jobs)" 1
expect "tests say so where nothing was compiled" contains "$("$project/numemu" test 2>/dev/null)" "Nothing was compiled."
printf '#!/bin/sh\necho again\n' >"$project/cli/program"

launch() { NUMEMU_COMPILE_TIMES=$scratch/$1 "$root/cmake/compile_time.sh" sh -c 'echo out; echo err >&2; exit 5' -o "a b%.o" 2>&1; echo $?; }
expect "output and status of a compiler pass through its launcher" equal "$(launch times)" $'out\nerr\n5'
expect "the launcher notes processor time and object" grep -qE '^[0-9.]+ [0-9.]+ a b%\.o$' times
expect "a log that cannot be written does not stop the compiler" equal "$(launch no/times)" $'out\nerr\n5'
for i in {1..20}; do launch times >/dev/null & done
wait
expect "lines of compilers that end together stay whole" equal "$(grep -cE '^[0-9.]+ [0-9.]+ a b%\.o$' times)" 21

mv "$project" "$scratch/elsewhere" && project=$scratch/elsewhere
expect "a moved checkout is configured anew" equal "$("$project/numemu" units 2>/dev/null)" again

# Neither root nor sudo: a PATH of links that leaves sudo out, and for root another user.
rm "$tools/sudo" "$tools/zz-paint"
for tool in bash env readlink dirname sed find mkdir awk flock cat tail tput tee cmake ninja grep cp sh sort; do
  ln -sf "$(type -P "$tool")" "$tools/$tool"
done
as_user=()
if ((EUID == 0)); then
  chown -R 65534:65534 "$project"
  as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
fi
: >apt.log
touch "$project/cli/program"
output=$(PATH=$tools "${as_user[@]/#setpriv/$(type -P setpriv)}" "$project/numemu" sweep 2>&1)
status=$?
expect "without root and sudo it exits with 2" equal "$status" 2
expect "without root and sudo it says the line" contains "$output" "$install"
expect "without root and sudo apt is not called" equal "$(cat apt.log)" ""

echo "$failures failed"
exit $((failures > 0))
