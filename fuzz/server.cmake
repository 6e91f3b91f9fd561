# SPDX-License-Identifier: Apache-2.0
set(server_rooms server slots nfs4 rpcrdma rpc rdma_loop rdma mem io xdr base)
nfsrdma_fuzz(compound_call SOURCES ${CMAKE_CURRENT_LIST_DIR}/compound_call.cpp ${CMAKE_SOURCE_DIR}/tests/server/harness.cpp
             ROOMS ${server_rooms} LIBS GTest::gtest)

# Writes the seeds (fuzz/corpus is checked in; this is how it was made).
add_executable(make_call_seeds EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/make_call_seeds.cpp
                               ${CMAKE_SOURCE_DIR}/tests/server/harness.cpp)
nfsrdma_link_rooms(make_call_seeds ${server_rooms})
target_link_libraries(make_call_seeds PRIVATE nfsrdma_flags GTest::gtest)
target_include_directories(make_call_seeds PRIVATE ${CMAKE_SOURCE_DIR})
