# SPDX-License-Identifier: Apache-2.0
# A room is a folder under libnfsrdma/ with one job. Each is an OBJECT library; who may include whom is
# decided in docs/architecture.md and enforced by tests/tidy.

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(NFSRDMA_CCACHE ccache)
  if(NFSRDMA_CCACHE)
    set(CMAKE_C_COMPILER_LAUNCHER ${NFSRDMA_CCACHE})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${NFSRDMA_CCACHE})
  endif()
endif()

add_library(nfsrdma_flags INTERFACE)
target_include_directories(nfsrdma_flags INTERFACE ${CMAKE_SOURCE_DIR}/libnfsrdma ${CMAKE_SOURCE_DIR}/include
                                                   ${CMAKE_BINARY_DIR}/include)
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
if(NFSRDMA_FUZZ)
  target_compile_options(nfsrdma_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# What the sanitizer flavours build: the tests that need no program (labels unit, sim and fuzz) and the fuzzers.
add_custom_target(unit_tests)
add_custom_target(fuzzers)

include(${CMAKE_CURRENT_LIST_DIR}/Version.cmake)

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
  foreach(label unit sim fuzz)
    if(label IN_LIST ARG_LABELS)
      add_dependencies(unit_tests ${name})
    endif()
  endforeach()
endfunction()

# nfsrdma_fuzz(NAME SOURCES file... ROOMS room... [LIBS target...] [DICTIONARY file]): a libFuzzer target
# build/<preset>/fuzz/NAME where NFSRDMA_FUZZ is on, and everywhere the test replay_NAME, which runs the same code
# over the inputs of fuzz/corpus/NAME. The sources define LLVMFuzzerTestOneInput.
function(nfsrdma_fuzz name)
  cmake_parse_arguments(ARG "" "DICTIONARY" "SOURCES;ROOMS;LIBS" ${ARGN})
  set(corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name})
  set(programs replay_${name})
  add_executable(replay_${name} ${ARG_SOURCES} ${CMAKE_SOURCE_DIR}/fuzz/replay.cpp)
  add_test(NAME replay_${name} COMMAND replay_${name} ${corpus})
  set_tests_properties(replay_${name} PROPERTIES LABELS fuzz TIMEOUT 60)
  add_dependencies(unit_tests replay_${name})
  if(NFSRDMA_FUZZ)
    list(APPEND programs fuzz_${name})
    add_executable(fuzz_${name} ${ARG_SOURCES})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(fuzz_${name} PROPERTIES OUTPUT_NAME ${name})
    if(ARG_DICTIONARY)
      configure_file(${ARG_DICTIONARY} ${CMAKE_BINARY_DIR}/fuzz/${name}.dict COPYONLY)
    endif()
    add_dependencies(fuzzers fuzz_${name})
  endif()
  foreach(program IN LISTS programs)
    nfsrdma_link_rooms(${program} ${ARG_ROOMS})
    target_link_libraries(${program} PRIVATE nfsrdma_flags ${ARG_LIBS})
    target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR})
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  endforeach()
endfunction()

# nfsrdma_install_program(TARGET COMPONENT [SBIN]): installs a program so that it finds the library beside it.
function(nfsrdma_install_program target component)
  set(place ${CMAKE_INSTALL_BINDIR})
  if("SBIN" IN_LIST ARGN)
    set(place ${CMAKE_INSTALL_SBINDIR})
  endif()
  file(RELATIVE_PATH to_library ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${to_library}")
  install(TARGETS ${target} RUNTIME DESTINATION ${place} COMPONENT ${component})
endfunction()

# nfsrdma_manual(NAME.SECTION COMPONENT): installs docs/man/NAME.SECTION.scd as a manual page where scdoc is there.
find_program(NFSRDMA_SCDOC scdoc)
function(nfsrdma_manual page component)
  if(NOT NFSRDMA_SCDOC)
    return()
  endif()
  set(source ${CMAKE_SOURCE_DIR}/docs/man/${page}.scd)
  set(output ${CMAKE_BINARY_DIR}/man/${page})
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/man)
  add_custom_command(OUTPUT ${output} COMMAND ${NFSRDMA_SCDOC} < ${source} > ${output} DEPENDS ${source} VERBATIM)
  add_custom_target(manual_${page} ALL DEPENDS ${output})
  string(REGEX REPLACE ".*\\." "" section ${page})
  install(FILES ${output} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${component})
endfunction()
