# Writes the ctest file of one test executable: a test per Catch2 case, labelled by its tags.
# (catch_discover_tests of Catch2 2.13 cannot turn tags into labels.) Inputs: NAME, EXECUTABLE, OUTPUT, SHARED.
cmake_minimum_required(VERSION 3.25)

# Brackets and semicolons of a case name would be read as list syntax: they travel as control characters.
string(ASCII 1 open)
string(ASCII 2 close)
string(ASCII 3 semicolon)

# cases(SPEC VARIABLE): the names of the cases a Catch2 test specification selects.
function(cases spec variable)
  execute_process(COMMAND ${EXECUTABLE} ${spec} --list-test-names-only
    OUTPUT_VARIABLE names ERROR_VARIABLE trouble RESULT_VARIABLE count)
  if(NOT count MATCHES "^[0-9]+$")  # Catch2 returns the number of cases, a crash a word
    message(FATAL_ERROR "${NAME} cannot list its cases: ${count}\n${trouble}")
  endif()
  string(REPLACE "[" "${open}" names "${names}")
  string(REPLACE "]" "${close}" names "${names}")
  string(REPLACE ";" "${semicolon}" names "${names}")
  string(REGEX REPLACE "\n$" "" names "${names}")
  string(REPLACE "\n" ";" names "${names}")
  set(${variable} "${names}" PARENT_SCOPE)
endfunction()

set(all "")
foreach(label fast slow exhaustive exhaustive-all shared silicon)
  cases("[${label}]" names)
  foreach(name IN LISTS names)
    list(APPEND all "${name}")
    string(MD5 id "${name}")
    list(APPEND labels_${id} ${label})
  endforeach()
endforeach()
list(REMOVE_DUPLICATES all)

# A case without a label would never run.
cases("~[fast]~[slow]~[exhaustive]~[exhaustive-all]" unlabelled)
if(unlabelled)
  message(FATAL_ERROR "${NAME}: tag these cases [fast], [slow], [exhaustive] or [exhaustive-all]: ${unlabelled}")
endif()

string(REGEX REPLACE "_test$" "" floor ${NAME})
set(script "# Made by tests/discover.cmake.\n")
foreach(name IN LISTS all)
  string(MD5 id "${name}")
  string(REPLACE "${open}" "\\[" pattern "${name}")
  string(REPLACE "${close}" "\\]" pattern "${pattern}")
  string(REPLACE "," "\\," pattern "${pattern}")
  string(REPLACE "${open}" "[" name "${name}")
  string(REPLACE "${close}" "]" name "${name}")
  string(REPLACE "${semicolon}" ";" name "${name}")
  string(REPLACE "${semicolon}" ";" pattern "${pattern}")
  set(timeout 7200)
  if("fast" IN_LIST labels_${id})
    set(timeout 300)
  elseif("exhaustive-all" IN_LIST labels_${id})
    set(timeout 86400)
  endif()
  set(skip "")
  if("shared" IN_LIST labels_${id} OR "silicon" IN_LIST labels_${id})
    set(skip "SKIP_REGULAR_EXPRESSION \"skipped: \"")
  endif()
  # Passive waiting: ctest runs several tests at once, and a thread that spins would take a core from them.
  string(APPEND script "add_test([==[${floor}: ${name}]==] [==[${EXECUTABLE}]==] [==[${pattern}]==])\n"
    "set_tests_properties([==[${floor}: ${name}]==] PROPERTIES LABELS \"${labels_${id}}\" TIMEOUT ${timeout} ${skip}\n"
    "  ENVIRONMENT [==[NUMEMU_SHARED=${SHARED};OMP_WAIT_POLICY=passive]==])\n")
endforeach()
file(WRITE ${OUTPUT} "${script}")
