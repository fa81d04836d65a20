# What `cmake --install` and `cpack -G DEB` put in place: the programs in libexec/numemu with numemu itself in bin, the library for C with
# its header and package files, data, manual pages and completions. Component numemu; component mpi is the plug-in of training over processes.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME numemu)
set(libexec ${CMAKE_INSTALL_LIBEXECDIR}/numemu)
get_property(programs GLOBAL PROPERTY NUMEMU_PROGRAMS)
install(TARGETS ${programs} RUNTIME DESTINATION ${libexec})
if(TARGET numemu_mpi)
  install(TARGETS numemu_mpi LIBRARY DESTINATION ${libexec} COMPONENT mpi)
endif()
# numemu becomes the program of its command, which it finds beside the file that the link leads to.
file(RELATIVE_PATH launcher ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBEXECDIR}/numemu/numemu)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/install)
file(CREATE_LINK ${launcher} ${PROJECT_BINARY_DIR}/install/numemu SYMBOLIC)
install(FILES ${PROJECT_BINARY_DIR}/install/numemu DESTINATION ${CMAKE_INSTALL_BINDIR})

install(DIRECTORY data/recipes data/sweeps DESTINATION ${CMAKE_INSTALL_DATADIR}/numemu)
file(GLOB networks CONFIGURE_DEPENDS data/*.safetensors)
install(FILES ${networks} DESTINATION ${CMAKE_INSTALL_DATADIR}/numemu)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

# Manual pages and completions come from the programs themselves.
string(TIMESTAMP date "%Y-%m-%d" UTC)
file(STRINGS cli/commands.def commands REGEX "^NUMEMU_COMMAND")
list(TRANSFORM commands REPLACE "^NUMEMU_COMMAND\\([a-z]+, ([a-z_]+),.*" "\\1")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/install/texts.cmake @ONLY CONTENT [[
set(to "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
function(write_text file)
  execute_process(COMMAND @CMAKE_CROSSCOMPILING_EMULATOR@ "${program}" ${ARGN} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE "${to}/${file}" "${text}")
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${CMAKE_INSTALL_PREFIX}/${file}")
  set(CMAKE_INSTALL_MANIFEST_FILES "${CMAKE_INSTALL_MANIFEST_FILES}" PARENT_SCOPE)
endfunction()
message(STATUS "Installing: manual pages and completions")
write_text(@CMAKE_INSTALL_MANDIR@/man1/numemu.1 --manual=@date@)
foreach(command @commands@)
  write_text(@CMAKE_INSTALL_MANDIR@/man1/numemu-${command}.1 --manual=@date@ ${command})
endforeach()
write_text(@CMAKE_INSTALL_DATADIR@/bash-completion/completions/numemu completion bash)
# Debian's zsh looks below /usr in a folder of its own.
set(zsh site-functions)
if(CMAKE_INSTALL_PREFIX MATCHES "/usr$" AND EXISTS /etc/debian_version)
  set(zsh vendor-completions)
endif()
write_text(@CMAKE_INSTALL_DATADIR@/zsh/${zsh}/_numemu completion zsh)
]])
install(CODE "set(program \"$<TARGET_FILE:numemu_launcher>\")\ninclude(\"${PROJECT_BINARY_DIR}/install/texts.cmake\")")

# The library for C. Both package files find it relative to themselves, so that a tree that moves stays whole.
if(TARGET numemu_c)
  include(CMakePackageConfigHelpers)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/numemu)
  set_target_properties(numemu_c PROPERTIES EXPORT_NAME numemu)
  target_include_directories(numemu_c INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS numemu_c EXPORT numemuTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES bindings/c/numemu.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  # SystemVerilog: sources that a simulator compiles.
  install(DIRECTORY bindings/sv DESTINATION ${CMAKE_INSTALL_DATADIR}/numemu)
  install(EXPORT numemuTargets NAMESPACE numemu:: DESTINATION ${package})
  file(WRITE ${PROJECT_BINARY_DIR}/install/numemuConfig.cmake "include(\"\${CMAKE_CURRENT_LIST_DIR}/numemuTargets.cmake\")\n")
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/install/numemuConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  file(RELATIVE_PATH prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/install/numemu.pc @ONLY CONTENT [[
prefix=${pcfiledir}/@prefix@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: numemu
Description: Bit-exact emulation of number formats and matrix units
Version: @PROJECT_VERSION@
Libs: -L${libdir} -lnumemu
Cflags: -I${includedir}
]])
  install(FILES ${PROJECT_BINARY_DIR}/install/numemuConfig.cmake ${PROJECT_BINARY_DIR}/install/numemuConfigVersion.cmake DESTINATION ${package})
  install(FILES ${PROJECT_BINARY_DIR}/install/numemu.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

# cpack -G DEB: one package, whose dependencies dpkg-shlibdeps reads off the programs and the library.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "numemu <numemu@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Bit-exact emulation of number formats, matrix units and networks")
set(CPACK_PACKAGE_DESCRIPTION "numemu computes what low-precision hardware computes: number formats, scales, masks, the\naccumulators of matrix units, and networks on top of them, bit for bit on a CPU. This package\nholds the program, the library for C with its header, data, manual pages and completions.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL numemu)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_NAME numemu)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
include(CPack)
