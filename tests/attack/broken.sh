#!/bin/sh
# The program with a fault of its own: FAULT=signal dies where it should refuse, FAULT=left leaves a file beside its results.
if [ "$FAULT" = left ]; then
  if [ -d out ]; then : >"out/left-$$"; fi
  exec "$BROKEN_PROGRAM" "$@"
fi
"$BROKEN_PROGRAM" "$@"
code=$?
if [ $code = 2 ]; then kill -SEGV $$; fi
exit $code
