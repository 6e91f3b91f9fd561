// SPDX-License-Identifier: Apache-2.0
// Handles for a process that may not open by kernel handle: inode number and birth time, and an index that knows
// under which name in which directory such an object was seen last. Found again only when the object at that place
// still has both. With a state directory the index is an append-only file there; it is not synced, so a machine that
// crashes may forget the newest names, whose handles are stale then.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/log.hpp"
#include "server/posix/handles.hpp"
#include "server/posix/names.hpp"

namespace nfsrdma::server {
namespace {

using nfs4::FileHandle;

constexpr std::byte version_byte{1};
constexpr std::byte kind_byte{'i'};
constexpr uint32_t body_bytes = 8 + 16;  // version, kind, six reserved; inode, birth
constexpr size_t entries_max = 1u << 20;
constexpr size_t depth_max = 4096;
constexpr size_t record_head_bytes = 34;  // two keys, length of the name

struct Key {
  uint64_t inode = 0;
  uint64_t birth_ns = 0;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& k) const { return (k.inode * 0x9e3779b97f4a7c15u) ^ k.birth_ns; }
};
struct Place {
  Key parent;
  std::string name;
};

Key key_of(const struct statx& st) {
  Key key{st.stx_ino, 0};
  if (st.stx_mask & STATX_BTIME) {
    key.birth_ns = static_cast<uint64_t>(st.stx_btime.tv_sec) * 1'000'000'000u + st.stx_btime.tv_nsec;
  }
  return key;
}

class IndexHandles final : public HandleMaker {
 public:
  IndexHandles(const ExportRoot& root, const SipKey& key) : root_(root), key_(key) {}

  Result<void> start(const std::string& state_dir) {
    struct statx st {};
    if (statx(root_.fd(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) != 0) {
      return Error(errno, ErrorOrigin::local, std::strerror(errno));
    }
    root_key_ = key_of(st);
    if (state_dir.empty()) return {};
    std::string path = state_dir + "/handles";
    log_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!log_) return Error(errno, ErrorOrigin::local, path + ": " + std::strerror(errno));
    load();
    return {};
  }

  Answer<FileHandle> make(int, const struct statx& st, const FileHandle& parent, std::string_view name) override {
    Key key = key_of(st);
    if (!parent.empty()) remember(key, key_in(parent), name);
    return handle_of(key);
  }

  Answer<Fd> open(const FileHandle& handle) override {
    const std::byte* in = handle.data.bytes.data();
    if (handle.data.size != body_bytes + handle_mac_bytes || in[0] != version_byte || in[1] != kind_byte) {
      return Status::badhandle;
    }
    // Signed by an earlier process without a state directory: it was good once.
    if (!handle_is_signed(key_, handle)) return Status::stale;
    Key key = key_in(handle);
    std::vector<std::string> names;
    if (!way_to(key, names)) return Status::stale;
    Fd fd(openat(root_.fd(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (size_t i = names.size(); fd && i > 0; --i) {
      open_how how{};
      how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
      how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
      fd = Fd(static_cast<int>(syscall(SYS_openat2, fd.get(), names[i - 1].c_str(), &how, sizeof how)));
    }
    struct statx st {};
    if (!fd || statx(fd.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) != 0 ||
        !(key_of(st) == key)) {
      return Status::stale;
    }
    return fd;
  }

  void moved(const FileHandle& handle, const FileHandle& parent, std::string_view name) override {
    remember(key_in(handle), key_in(parent), name);
  }

 private:
  Answer<FileHandle> handle_of(const Key& key) {
    FileHandle handle;
    std::byte* out = handle.data.bytes.data();
    std::memset(out, 0, body_bytes);
    out[0] = version_byte;
    out[1] = kind_byte;
    base::store_be(out + 8, key.inode);
    base::store_be(out + 16, key.birth_ns);
    handle.data.size = body_bytes;
    sign_handle(key_, handle);
    return handle;
  }

  static Key key_in(const FileHandle& handle) {
    const std::byte* in = handle.data.bytes.data();
    return {base::load_be<uint64_t>(in + 8), base::load_be<uint64_t>(in + 16)};
  }

  // Names from the object up to the root.
  bool way_to(Key key, std::vector<std::string>& names) {
    std::lock_guard lock(mutex_);
    while (!(key == root_key_)) {
      auto it = places_.find(key);
      if (it == places_.end() || names.size() >= depth_max) return false;
      names.push_back(it->second.name);
      key = it->second.parent;
    }
    return true;
  }

  void remember(const Key& key, const Key& parent, std::string_view name) {
    std::lock_guard lock(mutex_);
    if (put(key, parent, name) && log_) append(key, parent, name);
  }

  // False when it was known like that.
  bool put(const Key& key, const Key& parent, std::string_view name) {
    auto [it, fresh] = places_.try_emplace(key);
    if (!fresh && it->second.parent == parent && it->second.name == name) return false;
    it->second = Place{parent, std::string(name)};
    if (!fresh) return true;
    by_age_.push_back(key);
    if (by_age_.size() > entries_max) {
      places_.erase(by_age_.front());
      by_age_.pop_front();
    }
    return true;
  }

  void append(const Key& key, const Key& parent, std::string_view name) {
    std::array<std::byte, record_head_bytes + 256> record;
    size_t length = std::min<size_t>(name.size(), 255);
    uint64_t words[4] = {key.inode, key.birth_ns, parent.inode, parent.birth_ns};
    for (size_t i = 0; i < 4; ++i) base::store_be(record.data() + 8 * i, words[i]);
    base::store_be(record.data() + 32, static_cast<uint16_t>(length));
    std::memcpy(record.data() + record_head_bytes, name.data(), length);
    ssize_t n = write(log_.get(), record.data(), record_head_bytes + length);
    if (n != static_cast<ssize_t>(record_head_bytes + length)) {
      base::log(base::LogLevel::error, "server", "the handle index cannot be written any more (%s): handles made "
                "from now on will be stale after a restart", std::strerror(errno));
      log_ = Fd();
    }
  }

  void load() {
    std::vector<std::byte> bytes;
    std::array<std::byte, 65536> chunk;
    for (ssize_t n; (n = read(log_.get(), chunk.data(), chunk.size())) > 0;) {
      bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + n);
    }
    size_t at = 0;
    while (at + record_head_bytes <= bytes.size()) {
      const std::byte* in = bytes.data() + at;
      size_t length = base::load_be<uint16_t>(in + 32);
      if (length > 255 || at + record_head_bytes + length > bytes.size()) break;
      put({base::load_be<uint64_t>(in), base::load_be<uint64_t>(in + 8)},
          {base::load_be<uint64_t>(in + 16), base::load_be<uint64_t>(in + 24)},
          {reinterpret_cast<const char*>(in + record_head_bytes), length});
      at += record_head_bytes + length;
    }
    rewrite(at != bytes.size());
  }

  // Keeps the file as long as what it knows: renames and removed files would make it grow for ever.
  void rewrite(bool damaged) {
    struct stat st {};
    size_t live = 0;
    for (const auto& [key, place] : places_) live += record_head_bytes + place.name.size();
    if (!damaged && (fstat(log_.get(), &st) != 0 || static_cast<size_t>(st.st_size) <= 2 * live)) return;
    if (ftruncate(log_.get(), 0) != 0) return;
    for (const auto& [key, place] : places_) {
      if (log_) append(key, place.parent, place.name);
    }
  }

  const ExportRoot& root_;
  SipKey key_;
  Key root_key_;
  std::mutex mutex_;
  std::unordered_map<Key, Place, KeyHash> places_;  // guarded by mutex_, like what follows
  std::deque<Key> by_age_;
  Fd log_;
};

}  // namespace

Result<std::unique_ptr<HandleMaker>> make_index_handles(const ExportRoot& root, const SipKey& key,
                                                        const std::string& state_dir) {
  auto maker = std::make_unique<IndexHandles>(root, key);
  if (auto started = maker->start(state_dir); !started) return started.error();
  return std::unique_ptr<HandleMaker>(std::move(maker));
}

}  // namespace nfsrdma::server
