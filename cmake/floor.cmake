# Compiler flags and precompiled headers shared by every target, and the functions every floor is built with.
# Every library is looked up here, once: a static floor hands its own on to whoever links it.
foreach(package OpenMP fmt OpenSSL Boost hwy Eigen3 ZLIB PNG JPEG SQLite3 nlohmann_json CLI11)
  find_package(${package} REQUIRED)
endforeach()
# Debian's package file for CMake fails unless libzip's programs are installed too.
find_library(NUMEMU_ZIP zip REQUIRED)

add_library(numemu_flags INTERFACE)
target_include_directories(numemu_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
# Contraction would replace a multiplication and an addition by one rounding: never, bits decide here.
# -fPIC for programs, too: they use the precompiled headers of libraries.
target_compile_options(numemu_flags INTERFACE -fPIC -ffp-contract=off -Wall -Wextra -Wshadow $<$<BOOL:${NUMEMU_WERROR}>:-Werror>)
# gcc collects garbage whenever its heap has doubled, which takes a twelfth of a compilation. No source needs 1 GiB.
target_compile_options(numemu_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-heapsize=1048576>)
# `omp simd` is a permission here: clang warns of a loop that it leaves scalar, gcc does not.
target_compile_options(numemu_flags INTERFACE $<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wno-pass-failed>)
# gcc 13 and later take a reference into a table, looked up by a temporary name, for dangling; gcc 12 would not show where.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  target_compile_options(numemu_flags INTERFACE -Wno-dangling-reference)
endif()
target_link_libraries(numemu_flags INTERFACE OpenMP::OpenMP_CXX fmt::fmt hwy::hwy)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(intrinsics <immintrin.h>)
  # Highway compiles a vector file for SSE4, AVX2 and AVX-512. By default it would add SSSE3 and plain C++, for CPUs from before
  # 2010, and take nearly twice the time. Debug builds keep plain C++ in the proofs: other architectures use it.
  target_compile_definitions(numemu_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:HWY_BASELINE_TARGETS=HWY_SSE4>)
  # Later versions would add AVX3_ZEN4 and AVX3_SPR, whose instructions no source asks Highway for. The bits below AVX3's (1 << 8)
  # are the targets above it.
  if(hwy_VERSION VERSION_GREATER 1.0.3)
    target_compile_definitions(numemu_flags INTERFACE HWY_DISABLED_TARGETS=0xff)
  endif()
  # gcc 13 and later refuse a precompiled header in a source of another -O, which sets these: the same for all.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    target_compile_options(numemu_flags INTERFACE -munroll-only-small-loops -mvzeroupper)
  endif()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  # NEON alone: vectors of SVE have no size, so no class can hold them.
  target_compile_definitions(numemu_flags INTERFACE HWY_COMPILE_ONLY_STATIC)
  # Highway compiles NEON with AES; what is inlined there must have the same target. -Wpsabi only tells of an older gcc.
  target_compile_options(numemu_flags INTERFACE -march=armv8-a+crypto -Wno-psabi)
endif()
# Debian's default linker takes three times as long as gold, which comes with it, for the same programs.
find_program(NUMEMU_GOLD ld.gold)
if(NUMEMU_GOLD)
  target_link_options(numemu_flags INTERFACE -fuse-ld=gold)
endif()
if(NUMEMU_SANITIZE)
  target_compile_options(numemu_flags INTERFACE -fsanitize=${NUMEMU_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(numemu_flags INTERFACE -fsanitize=${NUMEMU_SANITIZE})
endif()

# numemu_precompiled(NAME HEADER...): precompiled headers for the targets that reuse them. The flags must be the same; definitions
# that the headers do not read may differ. CMAKE_DISABLE_PRECOMPILE_HEADERS=ON shows that files include what they use themselves.
function(numemu_precompiled name)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/${name}.cpp CONTENT "")
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/generated/${name}.cpp)
  target_link_libraries(${name} PRIVATE numemu_flags)
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()
# What most files of the floors include. Vector files spend a third of their time on the intrinsics.
set(numemu_common_headers <fmt/format.h> <algorithm> <array> <atomic> <cmath> <functional> <map> <memory> <mutex> <optional> <set>
    <string> <vector>)
numemu_precompiled(numemu_headers ${numemu_common_headers} ${intrinsics} <hwy/targets.h>)

# numemu_sources(OUTPUT SOURCES PATTERN... [EXCEPT PATTERN...]): the .cpp files that match, relative to the calling folder; "x/*.cpp"
# matches in folders of x, too. Files that an earlier library or program of the calling folder has are left out.
function(numemu_sources output)
  cmake_parse_arguments(PARSE_ARGV 1 files "" "" "SOURCES;EXCEPT")
  foreach(kind SOURCES EXCEPT)
    list(TRANSFORM files_${kind} PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    if(files_${kind})
      file(GLOB_RECURSE files_${kind} CONFIGURE_DEPENDS ${files_${kind}})
    endif()
  endforeach()
  get_property(taken DIRECTORY PROPERTY NUMEMU_TAKEN)
  list(REMOVE_ITEM files_SOURCES ${files_EXCEPT} ${taken})
  set_property(DIRECTORY APPEND PROPERTY NUMEMU_TAKEN ${files_SOURCES})
  set(${output} ${files_SOURCES} PARENT_SCOPE)
endfunction()

# numemu_floor(NAME DEPENDENCY... [PRECOMPILED TARGET] [SOURCES PATTERN...] [EXCEPT PATTERN...]): a static library of sources of the
# calling folder, by default of all that no library has yet; TARGET holds its precompiled headers, by default numemu_headers.
function(numemu_floor name)
  cmake_parse_arguments(PARSE_ARGV 1 floor "" "PRECOMPILED" "SOURCES;EXCEPT")
  if(NOT floor_PRECOMPILED)
    set(floor_PRECOMPILED numemu_headers)
  endif()
  if(NOT floor_SOURCES)
    set(floor_SOURCES *.cpp)
  endif()
  numemu_sources(sources SOURCES ${floor_SOURCES} EXCEPT ${floor_EXCEPT})
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC numemu_flags ${floor_UNPARSED_ARGUMENTS})
  target_precompile_headers(${name} REUSE_FROM ${floor_PRECOMPILED})
  numemu_cold(${name})
  # gcc 12 warns of its own intrinsics (PR 105593), and Highway's pragmas against that do not reach precompiled headers.
  foreach(source ${sources})
    file(STRINGS ${source} vectors REGEX "^#include <hwy/foreach_target.h>" LIMIT_COUNT 1)
    if(vectors AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-Wno-uninitialized;-Wno-maybe-uninitialized")
    endif()
  endforeach()
  numemu_groups(${name})
endfunction()

# The lines of cmake/cold.txt. Each names a folder or a file that exists, where the tree has its floor.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/cold.txt numemu_cold_lines REGEX "^[^#]")
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/cold.txt)
list(TRANSFORM numemu_cold_lines REPLACE "^!" "" OUTPUT_VARIABLE numemu_cold_places)
foreach(place ${numemu_cold_places})
  string(REGEX REPLACE "/.*" "" floor ${place})
  if(EXISTS ${PROJECT_SOURCE_DIR}/${floor} AND NOT EXISTS ${PROJECT_SOURCE_DIR}/${place})
    message(FATAL_ERROR "cmake/cold.txt: there is no ${place}")
  endif()
endforeach()

# numemu_is_cold(OUTPUT SOURCE): whether the last line that fits the source takes it in.
function(numemu_is_cold output source)
  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${source})
  set(last "!")
  foreach(line place IN ZIP_LISTS numemu_cold_lines numemu_cold_places)
    string(FIND ${path} ${place} at)
    if(at EQUAL 0)
      set(last ${line})
    endif()
  endforeach()
  string(FIND ${last} "!" out)
  if(out EQUAL 0)
    set(${output} OFF PARENT_SCOPE)
  else()
    set(${output} ON PARENT_SCOPE)
  endif()
endfunction()

# numemu_cold(TARGET): moves the sources of TARGET that cmake/cold.txt names into an object library of its own, compiled with -Og.
# They take a negligible share of any run: they read descriptions, texts and headers of files, plan, and pass work on. -Og compiles them
# in about two thirds of the time of -O2 (-O1: in three quarters). A Debug build compiles everything with the same options: clang
# refuses a precompiled header of -O0 in a source of -Og.
function(numemu_cold target)
  if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(cold "")
  foreach(source ${sources})
    numemu_is_cold(is_cold ${source})
    if(is_cold)
      list(APPEND cold ${source})
      list(REMOVE_ITEM sources ${source})
    endif()
  endforeach()
  if(NOT cold)
    return()
  endif()
  add_library(${target}_cold OBJECT ${cold})
  target_compile_options(${target}_cold PRIVATE -Og)
  target_compile_definitions(${target}_cold PRIVATE $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
  target_link_libraries(${target}_cold PRIVATE $<TARGET_PROPERTY:${target},LINK_LIBRARIES>)
  get_target_property(precompiled ${target} PRECOMPILE_HEADERS_REUSE_FROM)
  target_precompile_headers(${target}_cold REUSE_FROM ${precompiled})
  numemu_groups(${target}_cold)
  set_property(TARGET ${target} PROPERTY SOURCES ${sources} $<TARGET_OBJECTS:${target}_cold>)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
endfunction()

# numemu_table(FOLDER PREFIX): writes generated/<FOLDER>/table.inc with one line PREFIX(stem) for every .cpp in FOLDER, and for every
# NAME/NAME.cpp in it, so that adding a file is all it takes to add a policy or an experiment.
function(numemu_table folder prefix)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  file(GLOB in_rooms CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*/*.cpp)
  set(stems "")
  foreach(file ${files} ${in_rooms})
    cmake_path(GET file STEM stem)
    if(file IN_LIST files OR file MATCHES "/${stem}/${stem}\\.cpp$")
      list(APPEND stems ${stem})
    endif()
  endforeach()
  list(SORT stems)
  list(TRANSFORM stems REPLACE "(.+)" "${prefix}(\\1)")
  list(JOIN stems "\n" lines)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/${folder}/table.inc CONTENT "${lines}\n" @ONLY)
endfunction()
