# SPDX-License-Identifier: Apache-2.0
nfsrdma_fuzz(mpa_stream SOURCES mpa_stream.cpp ROOMS rdma_iwarp rdma base)
