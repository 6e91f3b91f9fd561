# SPDX-License-Identifier: Apache-2.0
# A room is a folder under libnfsrdma/ with one job. Each is an OBJECT library; who may include whom is
# decided in docs/architecture.md and enforced by tests/tidy.

add_library(nfsrdma_flags INTERFACE)
target_include_directories(nfsrdma_flags INTERFACE ${CMAKE_SOURCE_DIR}/libnfsrdma ${CMAKE_SOURCE_DIR}/include)
target_compile_options(nfsrdma_flags INTERFACE -Wall -Wextra -Wconversion -Werror -fno-strict-aliasing)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports dangling pointers and uninitialised members inside coroutine frames that are neither.
  target_compile_options(nfsrdma_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fcoroutines>
                                                 -Wno-maybe-uninitialized -Wno-dangling-pointer)
endif()
if(NFSRDMA_SANITIZE)
  target_compile_options(nfsrdma_flags INTERFACE -fsanitize=${NFSRDMA_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=all)
  target_link_options(nfsrdma_flags INTERFACE -fsanitize=${NFSRDMA_SANITIZE})
endif()

# nfsrdma_room(NAME [SOURCES file...] [LIBS target...]): object library room_NAME of the .cpp files here.
# LIBS are outside libraries and reach whoever links the room.
function(nfsrdma_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  if(NOT ARG_SOURCES)
    file(GLOB_RECURSE ARG_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  endif()
  add_library(room_${name} OBJECT ${ARG_SOURCES})
  target_link_libraries(room_${name} PUBLIC nfsrdma_flags Threads::Threads ${ARG_LIBS})
  set_property(GLOBAL APPEND PROPERTY NFSRDMA_ROOMS ${name})
endfunction()

# Links rooms, objects and outside libraries both, into TARGET.
function(nfsrdma_link_rooms target)
  foreach(room IN LISTS ARGN)
    target_link_libraries(${target} PRIVATE room_${room})
  endforeach()
endfunction()

# nfsrdma_test(NAME SOURCES file... ROOMS room... [LIBS target...] [LABELS label...] [TIMEOUT s]):
# one GoogleTest executable, one CTest entry. Label defaults to "unit".
function(nfsrdma_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;ROOMS;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  nfsrdma_link_rooms(${name} ${ARG_ROOMS})
  target_link_libraries(${name} PRIVATE nfsrdma_flags GTest::gmock GTest::gtest_main ${ARG_LIBS})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
