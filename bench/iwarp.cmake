# SPDX-License-Identifier: Apache-2.0
add_library(bare_framed STATIC bare_framed.cpp comparison.cpp)
target_link_libraries(bare_framed PRIVATE nfsrdma_flags)
target_include_directories(bare_framed PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
add_executable(iwarp_bound iwarp_bound.cpp)
nfsrdma_link_rooms(iwarp_bound rdma_iwarp rdma base)
target_link_libraries(iwarp_bound PRIVATE bare_framed nfsrdma_flags)
set_target_properties(iwarp_bound PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
