# Batches: several short sources compiled as one, because reading headers costs most of their time (docs/build.md).
option(NUMEMU_BATCHES "Compile sources in batches: a cold build takes half the time, the rebuild of one file longer" OFF)
if(NUMEMU_BATCHES)
  find_package(Python3 COMPONENTS Interpreter)
  if(NOT Python3_FOUND)
    message(WARNING "NUMEMU_BATCHES needs python3: every source is compiled alone")
  endif()
endif()

# numemu_batches(TARGET): replaces the sources of TARGET by batches where batches.py finds that they may share one. Call it when
# the sources have their properties: sources with the same COMPILE_OPTIONS are grouped.
function(numemu_batches target)
  if(NOT NUMEMU_BATCHES OR NOT Python3_FOUND)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(kept ${sources})
  list(FILTER sources INCLUDE REGEX "^${PROJECT_SOURCE_DIR}/.*\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "^${PROJECT_BINARY_DIR}/") # generated ones
  foreach(options "" "-Og")
    set(group "")
    foreach(source ${sources})
      get_source_file_property(source_options ${source} COMPILE_OPTIONS)
      if(NOT source_options)
        set(source_options "")
      endif()
      if(source_options STREQUAL options)
        list(APPEND group ${source})
      endif()
    endforeach()
    if(NOT group)
      continue()
    endif()
    list(REMOVE_ITEM kept ${group})
    # The list is part of the configuration: ninja makes it again after a change to a source, and configures if it differs.
    set(list ${CMAKE_CURRENT_BINARY_DIR}/${target}${options}.batches)
    set(command ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/batches.py ${list} ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR} ${group})
    execute_process(COMMAND ${command} COMMAND_ERROR_IS_FATAL ANY)
    # The sources are dependencies by a depfile, not by DEPENDS: ninja stops before it configures where one of DEPENDS was deleted.
    add_custom_command(OUTPUT ${list} COMMAND ${command} DEPENDS ${PROJECT_SOURCE_DIR}/cmake/batches.py DEPFILE ${list}.d VERBATIM)
    add_custom_target(${target}${options}_batches DEPENDS ${list}) # of its own, so that it waits for no library
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
    file(STRINGS ${list} compiled)
    set_source_files_properties(${compiled} PROPERTIES COMPILE_OPTIONS "${options}")
    foreach(source ${compiled})
      # gcc takes an included file for a header: a type of an unnamed namespace there makes it warn.
      if(NOT source IN_LIST group AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${options};-Wno-subobject-linkage")
      endif()
    endforeach()
    list(APPEND kept ${compiled})
  endforeach()
  set_property(TARGET ${target} PROPERTY SOURCES ${kept})
endfunction()

# numemu_batches_later(TARGET): the same at the end of the calling folder, when the sources have their properties.
macro(numemu_batches_later target)
  cmake_language(EVAL CODE "cmake_language(DEFER CALL numemu_batches [[${target}]])")
endmacro()
