# Compiler flags shared by every target, and the two functions every floor is built with.
# Every library is looked up here, once: a static floor hands its own on to whoever links it.
foreach(package OpenMP fmt OpenSSL Boost hwy Eigen3 ZLIB SQLite3 nlohmann_json CLI11)
  find_package(${package} REQUIRED)
endforeach()

add_library(numemu_flags INTERFACE)
target_include_directories(numemu_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
# Contraction would replace a multiplication and an addition by one rounding: never, bits decide here.
target_compile_options(numemu_flags INTERFACE -ffp-contract=off -Wall -Wextra -Wshadow $<$<BOOL:${NUMEMU_WERROR}>:-Werror>)
target_link_libraries(numemu_flags INTERFACE OpenMP::OpenMP_CXX fmt::fmt)
if(NUMEMU_SANITIZE)
  target_compile_options(numemu_flags INTERFACE -fsanitize=${NUMEMU_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(numemu_flags INTERFACE -fsanitize=${NUMEMU_SANITIZE})
endif()

# numemu_floor(NAME DEPENDENCY...): a static library of every .cpp below the calling folder.
function(numemu_floor name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC numemu_flags ${ARGN})
  # What nearly every file includes; CMAKE_DISABLE_PRECOMPILE_HEADERS=ON shows that files include it themselves.
  target_precompile_headers(${name} PRIVATE <fmt/format.h> <algorithm> <array> <atomic> <cmath> <functional> <map> <memory> <mutex>
                            <optional> <set> <string> <vector>)
endfunction()

# numemu_table(FOLDER PREFIX): writes generated/<FOLDER>/table.inc with one line PREFIX(stem) for every .cpp in FOLDER,
# so that adding a file is all it takes to add a policy or an experiment.
function(numemu_table folder prefix)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  set(lines "")
  foreach(file ${files})
    get_filename_component(stem ${file} NAME_WE)
    string(APPEND lines "${prefix}(${stem})\n")
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/${folder}/table.inc CONTENT "${lines}" @ONLY)
endfunction()
