#!/usr/bin/env bash
# Compiler launcher of ./numemu: appends "USER SYSTEM OBJECT", seconds of processor time, to the file $NUMEMU_COMPILE_TIMES.
# Output and status are the compiler's; without the variable or its file the compiler alone runs. Each line is one write to a
# file opened for appending, so that lines of concurrent compilers stay whole.
if [[ -z ${NUMEMU_COMPILE_TIMES:-} ]] || ! { exec 4>>"$NUMEMU_COMPILE_TIMES"; } 2>/dev/null; then exec "$@"; fi
object=
for ((i = 1; i < $#; ++i)); do
  if [[ ${!i} == -o ]]; then next=$((i + 1)) object=${!next}; fi
done
TIMEFORMAT="%U %S ${object//%/%%}"
{ time "$@" 2>&3 3>&- 4>&-; } 3>&2 2>&4
