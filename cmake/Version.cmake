# SPDX-License-Identifier: Apache-2.0
# room_version: what this build is. version.hpp holds the numbers; the commit is asked for at every build and
# written only when it changed, so that only one small object is compiled again.

foreach(header version.h version.hpp)
  configure_file(${CMAKE_SOURCE_DIR}/include/nfsrdma/${header}.in ${CMAKE_BINARY_DIR}/include/nfsrdma/${header} @ONLY)
endforeach()

set(commit_header ${CMAKE_BINARY_DIR}/generated/nfsrdma_commit.h)
set(commit_command ${CMAKE_COMMAND} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DOUTPUT=${commit_header}
                   -P ${CMAKE_SOURCE_DIR}/cmake/commit.cmake)
execute_process(COMMAND ${commit_command} COMMAND_ERROR_IS_FATAL ANY)
add_custom_target(nfsrdma_commit COMMAND ${commit_command} BYPRODUCTS ${commit_header}
                  COMMENT "Asking git for the commit" VERBATIM)

add_library(room_version OBJECT ${CMAKE_SOURCE_DIR}/libnfsrdma/version.cpp)
target_link_libraries(room_version PUBLIC nfsrdma_flags)
target_include_directories(room_version PRIVATE ${CMAKE_BINARY_DIR}/generated)
add_dependencies(room_version nfsrdma_commit)
set_property(GLOBAL APPEND PROPERTY NFSRDMA_ROOMS version)
