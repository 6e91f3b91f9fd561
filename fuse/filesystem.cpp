// SPDX-License-Identifier: Apache-2.0
#include "filesystem.hpp"

#include <algorithm>

#include "channel.hpp"
#include "libfuse.hpp"

namespace nfsrdma::fuse {

Filesystem::Filesystem(Mount& mount_, const Options& options_, std::string directory_)
    : mount(mount_),
      options(options_),
      directory(std::move(directory_)),
      info(mount_.info()),
      inodes(mount_.root()),
      control(*this),
      block_bytes_(std::max<uint32_t>(4096, std::min(info.rsize_bytes, info.wsize_bytes))) {}

Filesystem::~Filesystem() = default;

Result<void> Filesystem::learn_root() {
  auto attributes = mount.get_attributes(inodes.root()->node, mount.default_credentials());
  if (!attributes) return attributes.error();
  if (attributes->type != NodeType::directory)
    return Error(ENOTDIR, ErrorOrigin::server, options.path + " is not a directory on the server");
  numbering_ = {attributes->fsid_major, attributes->fsid_minor};
  stat_of(*inodes.root(), *attributes);
  return {};
}

struct stat Filesystem::stat_of(Inode& inode, const Attributes& attributes) const {
  inode.type.store(attributes.type, std::memory_order_relaxed);
  inode.number.store(numbering_.number_of(attributes), std::memory_order_relaxed);
  inode.everybody_searches.store((attributes.mode & 0111) == 0111, std::memory_order_relaxed);
  uint32_t hidden = 0;
  if (attributes.type == NodeType::regular) {
    std::scoped_lock lock(inode.mutex);
    hidden = inode.silly ? 1 : 0;
  }
  return to_stat(attributes, numbering_, block_bytes_, hidden);
}

struct stat Filesystem::stat_of(const Attributes& attributes) const {
  return to_stat(attributes, numbering_, block_bytes_);
}

double Filesystem::attribute_seconds(NodeType type) const {
  if (options.noac) return 0;
  return type == NodeType::directory ? options.acdirmin_s : options.acregmin_s;
}

double Filesystem::name_seconds(const Inode& directory) const {
  if (options.noac || options.lookup_cache == LookupCache::none) return 0;
  if (!directory.everybody_searches.load(std::memory_order_relaxed)) return 0;
  return 1;
}

double Filesystem::no_name_seconds(const Inode& directory) const {
  return options.lookup_cache == LookupCache::all ? name_seconds(directory) : 0;
}

InodePtr Filesystem::make_entry(const Inode& parent, const Node& node, const Attributes& attributes,
                                fuse_entry_param& out) {
  InodePtr inode = inodes.remember(node);
  out = {};
  out.ino = inode->id;
  out.attr = stat_of(*inode, attributes);
  out.attr_timeout = attribute_seconds(attributes.type);
  out.entry_timeout = name_seconds(parent);
  return inode;
}

}  // namespace nfsrdma::fuse
