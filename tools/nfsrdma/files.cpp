// SPDX-License-Identifier: Apache-2.0
#include "files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "report.hpp"
#include "show.hpp"
#include "transfer.hpp"

namespace cli {

using namespace nfsrdma;

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) ::close(fd_);
}

int UniqueFd::release() {
  int fd = fd_;
  fd_ = -1;
  return fd;
}

Result<void> UniqueFd::close() {
  if (::close(release()) != 0) return local_error(errno, "close");
  return {};
}

mode_t process_umask() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

Result<uint64_t> copy_to_fd(Session& session, const Entry& from, int fd, const std::string& name) {
  if (from.attributes.type == NodeType::directory)
    return Error(EISDIR, ErrorOrigin::server, "is a directory");
  if (from.attributes.type != NodeType::regular)
    return Error(EINVAL, ErrorOrigin::server, "is not a regular file");
  auto opened = session.mount().open(from.node, open_read, session.who());
  if (!opened) return opened.error();
  Progress progress(name, opened->attributes.size_bytes);
  auto copied = download(session.mount(), opened->file, opened->attributes.size_bytes, fd, progress);
  auto closed = session.mount().close(opened->file);
  if (copied && !closed) return closed.error();
  return copied;
}

Result<uint64_t> copy_to_local(Session& session, const Entry& from, int directory_fd, const std::string& name,
                               bool follow_local) {
  if (from.attributes.type == NodeType::directory)
    return Error(EISDIR, ErrorOrigin::server, "is a directory; -r copies it");
  const int common = O_WRONLY | O_CLOEXEC | (follow_local ? 0 : O_NOFOLLOW);
  const mode_t mode = from.attributes.mode & 0777;
  UniqueFd fd(::openat(directory_fd, name.c_str(), common | O_CREAT | O_EXCL, mode));
  const bool is_new = static_cast<bool>(fd);
  if (!fd && errno == EEXIST)
    fd = UniqueFd(::openat(directory_fd, name.c_str(), common | O_CREAT | O_TRUNC, mode));
  if (!fd) return local_error(errno, name);
  auto copied = copy_to_fd(session, from, fd.get(), name);
  if (copied)
    if (auto closed = fd.close(); !closed) copied = closed.error();
  if (!copied && is_new) ::unlinkat(directory_fd, name.c_str(), 0);
  return copied;
}

namespace {

struct Destination {
  File file;
  bool is_new = false;
};

Result<Destination> open_remote(Session& session, const Place& place, uint32_t mode, const Entry* existing) {
  if (existing) {
    if (existing->attributes.type == NodeType::directory)
      return Error(EISDIR, ErrorOrigin::server, "is a directory");
    if (existing->attributes.type != NodeType::regular)
      return Error(EEXIST, ErrorOrigin::server, "is a " + type_name(existing->attributes.type) + " there");
    auto opened = session.mount().open(existing->node, open_write | open_truncate, session.who());
    if (!opened) return opened.error();
    return Destination{opened->file, false};
  }
  // Exclusive, so that the file is known to be ours when a failure removes it.
  auto opened =
      session.mount().create(place.parent, place.name, open_write | open_exclusive, mode, session.who());
  if (!opened) return opened.error();
  return Destination{opened->file, true};
}

}  // namespace

Result<uint64_t> copy_to_remote(Session& session, int fd, uint64_t size_bytes, uint32_t mode,
                                const Place& place, const Entry* existing) {
  auto destination = open_remote(session, place, mode, existing);
  if (!destination) return destination.error();
  Progress progress(place.name, size_bytes);
  auto copied = upload(session.mount(), destination->file, fd, progress);
  auto closed = session.mount().close(destination->file);
  if (copied && !closed) copied = closed.error();
  if (!copied && destination->is_new) {
    auto removed = session.mount().remove(place.parent, place.name, session.who());
    if (!removed && copied.error().origin() != ErrorOrigin::connection)
      return copied.error().in("a part of it stays there as " + place.name);
  }
  return copied;
}

}  // namespace cli
