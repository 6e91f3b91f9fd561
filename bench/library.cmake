# SPDX-License-Identifier: Apache-2.0
# Against the shared library and the server as they are installed.
add_executable(library_bench library_bench.cpp)
target_link_libraries(library_bench PRIVATE nfsrdma::nfsrdma bare_framed nfsrdma_flags)
target_include_directories(library_bench PRIVATE ${CMAKE_SOURCE_DIR})
set_target_properties(library_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
add_dependencies(library_bench nfsrdma-serve)
