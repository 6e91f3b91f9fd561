# SPDX-License-Identifier: Apache-2.0
"""The rules of the house as data: who may include whom, which names live where, which words stay out."""

# Room under libnfsrdma/ -> rooms it may include besides itself.
ROOMS = {
    "base": "",
    "xdr": "base",
    "rdma": "base",
    "mem": "rdma base",
    "io": "rdma base",
    "rpc": "xdr mem io rdma base",
    "rpcrdma": "rpc mem io rdma xdr base",
    "nfs4": "xdr base",
    "slots": "nfs4 base",
    "session": "slots rpc nfs4 mem io xdr base",
    "state": "session nfs4 io base",
    "client": "state session rpc mem nfs4 io rdma xdr base",
    "capi": "base",
    "server": "slots nfs4 rpcrdma rpc mem io rdma xdr base",
}

# Folder outside libnfsrdma/ -> rooms it may include; "*" is every room. All of them may include include/nfsrdma/.
FOLDERS = {
    "include": "",
    "fuse": "",
    "examples": "",
    "tools/nfsrdma": "session nfs4 rpcrdma slots rpc mem io rdma xdr base",
    "tools/serve": "server base io rdma",
    "tests": "*",
    "fuzz": "*",
    "bench": "*",
}

# Single headers that a room may include beyond its row.
HEADERS = {
    "client": {"rpcrdma/factory.hpp"},
}

# Public headers of things with behaviour: only the rooms client, which implements them, and capi may include these from
# inside the library. The other public headers are values (errors, callbacks, options) and free for every room.
HANDLE_HEADERS = {"mount", "node", "file", "directory", "region", "buffer", "loop", "asio", "nfsrdma"}

# Files without a room of their own directly under libnfsrdma/.
LIBRARY_ROOT_INCLUDES = {"nfsrdma_commit.h"}

# (what, pattern in code without comments and strings, paths where it may stand)
NAMES = [
    ("ibverbs", r"\b(ibv_\w+|IBV_\w+|rdma_(cm|create|destroy|resolve|get|bind|set)_\w+|rdma_(connect|listen|accept"
                r"|reject|disconnect)\b)|<(infiniband|rdma)/",
     ("libnfsrdma/rdma/verbs/", "tests/rdma/", "tests/vm/")),
    ("asio", r"\bboost::(asio|beast)\b|<boost/(asio|beast)|\basio::",
     ("include/nfsrdma/asio.hpp", "fuse/", "tools/", "tests/", "examples/")),
    ("tirpc", r"<t?i?rpc/|\bclnt\w*_create\b|\bxdrmem_create\b", ("tests/", "tools/nfsrdma/")),
    ("cuda", r"\bcuda[A-Z]\w*|\bcu(Init|Mem|Ctx|Device|Pointer|Stream)[A-Z]?\w*|<cuda\w*\.h>",
     ("libnfsrdma/mem/", "tests/mem/")),
    ("libfuse", r"\bfuse_\w+|\bFUSE_\w+|<(fuse|linux/fuse)", ("fuse/", "tests/fuse/", "bench/")),
]

# Headers that compile slowly: never inside a header of ours but those named.
SLOW_HEADERS = (r"<(spdlog/|CLI/|boost/(asio|beast)|nlohmann/)", ("include/nfsrdma/asio.hpp",))

# Words that say how the work was organised, or where, instead of what is so. The brackets keep these lines from
# finding themselves.
WORDS = [
    r"/[w]ork/\w",
    r"/tmp/[n]fsrdma/",
    r"[.]library\b/",
    r"\b[s]hared/(design|lab|guide|protocol|field-cases)",
    r"\b[l]ab/(bounds|README|peers|guest|vm[.]sh|clean[.]sh)",
    r"\bsub-?[a]gents?\b",
    r"\b[i]ssue #?[0-9]+",
    r"\bas (the )?[i]ssue (says|asks)\b",
    r"\b[t]he (brief|CEO)\b",
    r"\b(T[O]DO|FIX[M]E|X[X]X)\b",
]

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 800
