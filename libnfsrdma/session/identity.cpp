// SPDX-License-Identifier: Apache-2.0
#include "session/identity.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/log.hpp"

namespace nfsrdma::session {
namespace {

std::string random_hex(base::Random& random) {
  return base::text("%016llx%016llx", static_cast<unsigned long long>(random.next()),
                    static_cast<unsigned long long>(random.next()));
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

Error state_error(const std::string& path, const char* what, int code) {
  return Error(code, ErrorOrigin::local, base::text("state_dir: %s %s: %s", what, path.c_str(), std::strerror(code)));
}

// Opens (making it if need be) and locks state_dir/client_id; reads what it holds.
Result<int> open_locked(const std::string& dir, std::string& kept) {
  if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) return state_error(dir, "cannot make", errno);
  std::string path = dir + "/client_id";
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return state_error(path, "cannot open", errno);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    int code = errno == EWOULDBLOCK ? EBUSY : errno;
    close(fd);
    if (code == EBUSY)
      return Error(EBUSY, ErrorOrigin::local,
                   "state_dir: " + dir + " is in use by another running client; give each its own directory");
    return state_error(path, "cannot lock", code);
  }
  std::array<char, 1025> buffer{};
  ssize_t n = pread(fd, buffer.data(), buffer.size(), 0);
  if (n > 0 && n <= 1024) kept.assign(buffer.data(), static_cast<size_t>(n));
  while (!kept.empty() && kept.back() == '\n') kept.pop_back();
  return fd;
}

}  // namespace

Result<ClientIdentity> ClientIdentity::make(const IdentityParams& params, base::Random& random, base::Clock& clock) {
  ClientIdentity identity;
  if (params.client_id.size() > nfs4::opaque_bytes_max)
    return Error(EINVAL, ErrorOrigin::usage,
                 base::text("client_id is %zu bytes long; at most 1024 are possible", params.client_id.size()));
  std::string fresh = "nfsrdma " + host_name() + " " + random_hex(random);
  if (!params.state_dir.empty()) {
    std::string kept;
    auto fd = open_locked(params.state_dir, kept);
    if (!fd) return fd.error();
    identity.lock_fd_ = *fd;
    if (kept.empty()) {
      kept = fresh;
      if (ftruncate(*fd, 0) != 0 || pwrite(*fd, kept.data(), kept.size(), 0) != static_cast<ssize_t>(kept.size()) ||
          fsync(*fd) != 0)
        return state_error(params.state_dir, "cannot write to", errno);
    }
    fresh = kept;
  }
  identity.owner_ = params.client_id.empty() ? fresh : params.client_id;
  base::store_be<uint64_t>(identity.verifier_.data(), clock.wall_ns() ^ random.next());
  return identity;
}

ClientIdentity::ClientIdentity(ClientIdentity&& other) noexcept { *this = std::move(other); }

ClientIdentity& ClientIdentity::operator=(ClientIdentity&& other) noexcept {
  std::swap(owner_, other.owner_);
  std::swap(verifier_, other.verifier_);
  std::swap(lock_fd_, other.lock_fd_);
  return *this;
}

ClientIdentity::~ClientIdentity() {
  if (lock_fd_ >= 0) close(lock_fd_);
}

}  // namespace nfsrdma::session
