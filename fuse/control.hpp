// SPDX-License-Identifier: Apache-2.0
// `.nfsrdma` in the mount's root: a directory that only its name reaches, of read-only files that are answered from
// memory, also while the server is silent. Its file names and formats are a public interface.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "task.hpp"

struct fuse_file_info;

namespace nfsrdma::fuse {

class Channel;
class Filesystem;
class Request;
using RequestPtr = std::unique_ptr<Request>;

class Control {
 public:
  static constexpr std::string_view directory_name = ".nfsrdma";
  static constexpr uint64_t directory_id = uint64_t{1} << 63;
  // Numbers of its inodes; the inode table gives out none of them.
  static bool owns(uint64_t id) { return id >> 63; }

  explicit Control(Filesystem& fs);

  // Loop thread. parent: the root or the control directory.
  void lookup(Request& request, uint64_t parent, std::string_view name);
  void getattr(Request& request, uint64_t id);
  void open(RequestPtr request, uint64_t id, fuse_file_info info);
  void readdir(Request& request, uint64_t id, size_t size, off_t offset, bool plus);
  void read(Channel& channel, uint64_t unique, uint64_t handle, uint64_t offset, uint32_t size);

 private:
  static Detached open_text(Control& control, RequestPtr request, uint64_t id, std::shared_ptr<fuse_file_info> info);
  struct stat stat_of(uint64_t id) const;
  std::string text_of(uint64_t id, const Stats& stats) const;

  Filesystem& fs_;
  int64_t since_s_;
};

}  // namespace nfsrdma::fuse
