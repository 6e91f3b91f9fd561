# SPDX-License-Identifier: Apache-2.0
nfsrdma_fuzz(compound_reply SOURCES ${CMAKE_CURRENT_LIST_DIR}/compound_reply.cpp ROOMS nfs4 xdr base)
nfsrdma_fuzz(fattr4 SOURCES ${CMAKE_CURRENT_LIST_DIR}/fattr4.cpp ROOMS nfs4 xdr base)
nfsrdma_fuzz(callback_call SOURCES ${CMAKE_CURRENT_LIST_DIR}/callback_call.cpp
             ROOMS session slots rpc nfs4 mem io xdr base)

# Writes the seeds that come from the kernel's own traffic (fuzz/corpus is checked in; this is how it was made).
add_executable(make_seeds EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/make_seeds.cpp
                          ${CMAKE_SOURCE_DIR}/tests/nfs4/capture.cpp ${CMAKE_SOURCE_DIR}/tests/nfs4/capture_tcp.cpp)
nfsrdma_link_rooms(make_seeds rpc nfs4 xdr base)
target_link_libraries(make_seeds PRIVATE nfsrdma_flags)
target_include_directories(make_seeds PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/tests/nfs4)
