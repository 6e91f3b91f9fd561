// SPDX-License-Identifier: Apache-2.0
// The server's attributes in the kernel's shape.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "nfsrdma/node.hpp"

namespace nfsrdma::fuse {

// One st_dev serves the whole mount: a file system below the export's root is another one on the server, so that its
// fileids could meet the root's. Those of the root's file system stay as they are, others are mixed with their fsid.
struct Numbering {
  uint64_t fsid_major = 0, fsid_minor = 0;
  uint64_t number_of(const Attributes& attributes) const;
};

mode_t type_bits(NodeType type);

// hidden_links: silly names, which users do not see.
struct stat to_stat(const Attributes& attributes, const Numbering& numbering, uint32_t block_bytes,
                    uint32_t hidden_links = 0);

// Whether a mode alone shows that the caller may do `wanted` (4 read, 2 write, 1 execute); no access list is known
// here, so false means "ask the server".
bool mode_shows(const Attributes& attributes, uint32_t uid, bool in_group, uint32_t wanted);

}  // namespace nfsrdma::fuse
