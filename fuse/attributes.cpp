// SPDX-License-Identifier: Apache-2.0
#include "attributes.hpp"

#include <sys/sysmacros.h>

#include <algorithm>

namespace nfsrdma::fuse {
namespace {

uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

timespec to_timespec(const Time& time) {
  return {static_cast<time_t>(time.seconds), static_cast<long>(time.nanoseconds)};
}

}  // namespace

uint64_t Numbering::number_of(const Attributes& a) const {
  if (a.fsid_major == fsid_major && a.fsid_minor == fsid_minor) return a.fileid;
  return mix(a.fileid + mix(a.fsid_major + mix(a.fsid_minor + 0x9e3779b97f4a7c15u)));
}

mode_t type_bits(NodeType type) {
  switch (type) {
    case NodeType::regular: return S_IFREG;
    case NodeType::directory: return S_IFDIR;
    case NodeType::block: return S_IFBLK;
    case NodeType::character: return S_IFCHR;
    case NodeType::symlink: return S_IFLNK;
    case NodeType::socket: return S_IFSOCK;
    case NodeType::fifo: return S_IFIFO;
    case NodeType::none: break;
  }
  return 0;
}

struct stat to_stat(const Attributes& a, const Numbering& numbering, uint32_t block_bytes, uint32_t hidden_links) {
  struct stat st = {};
  st.st_ino = numbering.number_of(a);
  st.st_mode = type_bits(a.type) | (a.mode & 07777);
  st.st_nlink = a.links > hidden_links ? a.links - hidden_links : 0;
  st.st_uid = a.uid;
  st.st_gid = a.gid;
  st.st_rdev = makedev(a.rdev_major, a.rdev_minor);
  st.st_size = static_cast<off_t>(std::min<uint64_t>(a.size_bytes, INT64_MAX));
  st.st_blksize = block_bytes;
  st.st_blocks = static_cast<blkcnt_t>(a.used_bytes / 512 + (a.used_bytes % 512 != 0));
  st.st_atim = to_timespec(a.atime);
  st.st_mtim = to_timespec(a.mtime);
  st.st_ctim = to_timespec(a.ctime);
  return st;
}

bool mode_shows(const Attributes& attributes, uint32_t uid, bool in_group, uint32_t wanted) {
  uint32_t shift = uid == attributes.uid ? 6 : in_group ? 3 : 0;
  return (attributes.mode >> shift & wanted) == wanted;
}

}  // namespace nfsrdma::fuse
