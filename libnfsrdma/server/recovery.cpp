// SPDX-License-Identifier: Apache-2.0
#include "server/recovery.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/log.hpp"

namespace nfsrdma::server {
namespace {

constexpr SipKey name_key{0x636c69656e7473u, 0x6e616d6573u};
constexpr size_t owner_bytes_max = 1024;

Error failed(const std::string& path) {
  int why = errno;
  return Error(why, ErrorOrigin::local, path + ": " + std::strerror(why));
}

std::string read_file(const std::string& path, size_t most) {
  std::string text;
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  text.resize(most);
  ssize_t n = read(fd, text.data(), text.size());
  close(fd);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

// In place at once and durable: written beside it, synced, renamed.
bool write_file(const std::string& path, std::string_view bytes) {
  std::string fresh = path + ".new";
  int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  bool ok = write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) && fsync(fd) == 0;
  close(fd);
  return ok && rename(fresh.c_str(), path.c_str()) == 0;
}

}  // namespace

Result<std::unique_ptr<Recovery>> Recovery::open(const std::string& directory, base::Random& random) {
  std::unique_ptr<Recovery> recovery(new Recovery(directory));
  if (auto usable = recovery->workers_.usable(); !usable) return usable.error();
  std::string clients = directory + "/clients";
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return failed("state directory " + directory);
  if (mkdir(clients.c_str(), 0700) != 0 && errno != EEXIST) return failed("state directory " + clients);
  std::string lock = directory + "/lock";
  recovery->lock_fd_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (recovery->lock_fd_ < 0) return failed(lock);
  if (flock(recovery->lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    return Error(EBUSY, ErrorOrigin::local,
                 "state directory " + directory + " is in use by another server: end it, or name another directory");
  }
  if (auto loaded = recovery->load_key(random); !loaded) return loaded.error();
  recovery->load_owners();
  return recovery;
}

Recovery::~Recovery() {
  if (lock_fd_ >= 0) close(lock_fd_);
}

Result<void> Recovery::load_key(base::Random& random) {
  std::string path = directory_ + "/handle_key";
  std::string bytes = read_file(path, sizeof key_);
  if (bytes.size() != sizeof key_) {
    key_ = {random.next(), random.next()};
    bytes.assign(reinterpret_cast<const char*>(&key_), sizeof key_);
    if (!write_file(path, bytes)) return failed(path);
    sync_directory();
    return {};
  }
  std::memcpy(&key_, bytes.data(), sizeof key_);
  return {};
}

void Recovery::load_owners() {
  std::string clients = directory_ + "/clients";
  DIR* dir = opendir(clients.c_str());
  if (!dir) return;
  while (dirent* entry = readdir(dir)) {
    std::string name = entry->d_name;
    if (name[0] == '.' || name.ends_with(".new")) continue;
    std::string owner = read_file(clients + "/" + name, owner_bytes_max);
    if (!owner.empty()) owners_.insert(owner);
  }
  closedir(dir);
}

std::set<std::string> Recovery::owners() const {
  std::lock_guard lock(mutex_);
  return owners_;
}

std::string Recovery::path_of(const std::string& owner) const {
  return base::text("%s/clients/%016llx", directory_.c_str(),
                    static_cast<unsigned long long>(siphash(name_key, base::bytes_of(owner))));
}

void Recovery::sync_directory() {
  for (const std::string& path : {directory_ + "/clients", directory_}) {
    int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) continue;
    fsync(fd);
    close(fd);
  }
}

io::Task<void> Recovery::add(const std::string& owner) {
  co_await workers_.enter();
  std::lock_guard lock(mutex_);
  if (!owners_.insert(owner).second) co_return;
  if (write_file(path_of(owner), owner)) {
    sync_directory();
  } else {
    base::log(base::LogLevel::error, "server", "cannot record a client in %s (%s): it will not be able to reclaim "
              "its files after a restart", directory_.c_str(), std::strerror(errno));
  }
}

io::Task<void> Recovery::remove(std::string owner) {
  co_await workers_.enter();
  std::lock_guard lock(mutex_);
  if (owners_.erase(owner) > 0) unlink(path_of(owner).c_str());
}

SipKey key_of_machine(const std::string& directory) {
  std::string id = read_file("/etc/machine-id", 64);
  struct stat st {};
  if (stat(directory.c_str(), &st) == 0) id += base::text("/%llu", static_cast<unsigned long long>(st.st_ino));
  base::ConstBytes bytes = base::bytes_of(id);
  return {siphash({1, 2}, bytes), siphash({3, 4}, bytes)};
}

}  // namespace nfsrdma::server
