# SPDX-License-Identifier: Apache-2.0
nfsrdma_bench(codec_bench SOURCES codec_bench.cpp ROOMS nfs4 xdr)
