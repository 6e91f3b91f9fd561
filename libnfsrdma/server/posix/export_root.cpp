// SPDX-License-Identifier: Apache-2.0
#include "server/posix/export_root.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

namespace nfsrdma::server {
namespace {

constexpr int climb_max = 4096;

bool begins_with_directory(const std::string& path, const std::string& directory) {
  if (directory == "/") return true;
  return path.size() >= directory.size() && path.compare(0, directory.size(), directory) == 0 &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

}  // namespace

Result<ExportRoot> ExportRoot::open(const std::string& path) {
  ExportRoot root;
  root.fd_ = Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.fd_) {
    int failed = errno;
    const char* advice = failed == ENOENT    ? "does not exist: create it, or name another directory"
                         : failed == ENOTDIR ? "is not a directory: name one"
                         : failed == EACCES  ? "may not be read by this user: change its mode, or run as its owner"
                                             : std::strerror(failed);
    return Error(failed, ErrorOrigin::local, (path.empty() ? "\"\"" : path) + " " + advice);
  }
  struct stat st {};
  if (fstat(root.fd_.get(), &st) != 0) return Error(errno, ErrorOrigin::local, path + ": " + std::strerror(errno));
  root.device_ = st.st_dev;
  root.inode_ = st.st_ino;
  root.proc_ = Fd(::open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.proc_) return Error(errno, ErrorOrigin::local, "/proc is not mounted: mount it, the server needs it");
  root.path_ = root.path_of(root.fd_.get());
  return root;
}

ExportRoot::ExportRoot(ExportRoot&& other) noexcept
    : fd_(std::move(other.fd_)),
      proc_(std::move(other.proc_)),
      device_(other.device_),
      inode_(other.inode_),
      path_(std::move(other.path_)) {}

std::string ExportRoot::path_of(int fd) const {
  char name[16];
  std::snprintf(name, sizeof name, "%d", fd);
  std::array<char, PATH_MAX> path;
  ssize_t n = readlinkat(proc_.get(), name, path.data(), path.size());
  return n > 0 ? std::string(path.data(), static_cast<size_t>(n)) : std::string();
}

ExportRoot::Where ExportRoot::where(int fd) const {
  std::string path = path_of(fd);
  if (path.empty()) return Where::unknown;
  {
    std::lock_guard lock(mutex_);
    if (begins_with_directory(path, path_)) return Where::inside;
  }
  // The exported directory itself may have been renamed meanwhile.
  std::string root = path_of(fd_.get());
  path = path_of(fd);
  std::lock_guard lock(mutex_);
  path_ = root;
  if (!root.empty() && begins_with_directory(path, root)) return Where::inside;
  return path.empty() || path == "/" ? Where::unknown : Where::outside;
}

bool ExportRoot::holds_directory(int fd) const {
  Where at = where(fd);
  if (at != Where::unknown) return at == Where::inside;
  Fd current(openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  uint64_t below_device = 0, below_inode = 0;
  for (int i = 0; current && i < climb_max; ++i) {
    struct stat st {};
    if (fstat(current.get(), &st) != 0) return false;
    if (is_root(st.st_dev, st.st_ino)) return true;
    if (st.st_dev == below_device && st.st_ino == below_inode) return false;  // ".." of "/" is "/"
    below_device = st.st_dev;
    below_inode = st.st_ino;
    current = Fd(openat(current.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  return false;
}

}  // namespace nfsrdma::server
