# SPDX-License-Identifier: Apache-2.0
nfsrdma_fuzz(rpcrdma_header SOURCES ${CMAKE_CURRENT_LIST_DIR}/rpcrdma_header.cpp ROOMS rpcrdma rpc mem io rdma base)
nfsrdma_fuzz(rpc_reply SOURCES ${CMAKE_CURRENT_LIST_DIR}/rpc_reply.cpp ROOMS rpc base)
