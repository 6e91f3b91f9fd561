// SPDX-License-Identifier: Apache-2.0
// What all loops of one mount share.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attributes.hpp"
#include "control.hpp"
#include "handles.hpp"
#include "inode.hpp"
#include "nfsrdma/mount.hpp"
#include "notifier.hpp"
#include "work.hpp"

struct fuse_entry_param;

namespace nfsrdma::fuse {

class Channel;

inline constexpr uint32_t request_bytes_max = 1u << 20;  // payload of one READ or WRITE: libfuse 3.14 can do no more

class Filesystem {
 public:
  // directory: absolute path of the mount point.
  Filesystem(Mount& mount, const Options& options, std::string directory);
  ~Filesystem();

  // Not on a loop. Asks for the root's attributes, which numbers and timeouts rest on.
  Result<void> learn_root();

  Mount& mount;
  const Options options;
  const std::string directory;
  const MountInfo info;
  InodeTable inodes;
  HandleTable<OpenFile> files;
  HandleTable<OpenDirectory> directories;
  HandleTable<OpenText> texts;
  Control control;
  Notifier notifier;
  WorkCount work;
  std::vector<std::unique_ptr<Channel>> channels;
  std::atomic<uint64_t> opens{0};            // of files: open or under way
  std::atomic<bool> lost_writes{false};      // some failed after the last flush: nobody was left to be told
  std::atomic<bool> groups_unknown_said{false};

  // Takes note of what later answers need and gives the kernel's form.
  struct stat stat_of(Inode& inode, const Attributes& attributes) const;
  // Of an object that the kernel does not know.
  struct stat stat_of(const Attributes& attributes) const;
  double attribute_seconds(NodeType type) const;
  // How long the kernel may believe a name of this directory without asking, and that there is none.
  double name_seconds(const Inode& directory) const;
  double no_name_seconds(const Inode& directory) const;
  // Counts a lookup: give it back with inodes.forget if the kernel does not take the answer.
  InodePtr make_entry(const Inode& directory, const Node& node, const Attributes& attributes, fuse_entry_param& out);

  // Pool memory is short: acknowledged data holds it until its COMMIT, so everything is committed now. Loop thread.
  void relieve();

 private:
  std::atomic<bool> relieving_{false};
  Numbering numbering_;
  uint32_t block_bytes_;
};

}  // namespace nfsrdma::fuse
