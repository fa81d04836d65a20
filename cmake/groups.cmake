# Groups of sources: with CMAKE_UNITY_BUILD, which ./numemu sets, the short sources of a folder are compiled together, because reading
# headers costs most of their time (docs/build.md).
#
# numemu_groups(TARGET): groups the sources of TARGET, folder by folder. The names of a source's own must then differ from those of its
# neighbours: a clash is an error of the compiler, and tests/house/own_names_test.py proves that no source refers to a name of another.
# Sources of experiments whose namespace has the name of their folder, and tests, whose namespaces end in _test, share groups across
# folders: no other source sees their names.
# What could change the meaning of its neighbours is compiled alone: a source with macros, conditions, or a using-directive in no
# namespace.
function(numemu_groups target)
  if(NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "^${PROJECT_SOURCE_DIR}/.*\\.cpp$")
  set(folders "")
  foreach(source ${sources})
    file(STRINGS ${source} alone REGEX "^#(define|undef|if|pragma GCC)" LIMIT_COUNT 1)
    file(STRINGS ${source} scope REGEX "^(using namespace |namespace [a-z0-9_:]+ {)" LIMIT_COUNT 1)
    if(source MATCHES "^${PROJECT_BINARY_DIR}/" OR alone OR scope MATCHES "^using")
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      continue()
    endif()
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME room)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${folder})
    string(REPLACE "/" "_" folder ${folder})
    if(scope MATCHES "experiments::${room} {|_test {")
      set(folder rooms)
    endif()
    list(APPEND folders ${folder})
    list(APPEND in_${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder ${folders})
    set(most 10)
    if(folder STREQUAL "rooms")
      set(most 20)  # what two folders share of headers counts more than what two groups of one folder share
    endif()
    list(LENGTH in_${folder} count)
    math(EXPR groups "(${count} + ${most} - 1) / ${most}")
    set(i 0)
    foreach(source ${in_${folder}})
      math(EXPR group "${i} * ${groups} / ${count}")
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${folder}_${group})
      math(EXPR i "${i} + 1")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  # A grouped source is an included file, so gcc warns of its unnamed types as if they stood in a header, and clang of a local that hides
  # a name of a header that only a neighbour includes.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>
                                           $<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wno-shadow>)
endfunction()
