// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "server/posix/handles.hpp"

namespace nfsrdma::server {
namespace {

using nfs4::FileHandle;

constexpr std::byte version_byte{1};
constexpr std::byte kind_byte{'k'};
constexpr uint32_t head_bytes = 8;  // version, kind, two reserved, the kernel's handle type
constexpr uint32_t kernel_bytes_max = nfs4::file_handle_bytes_max - head_bytes - handle_mac_bytes;

// struct file_handle with room behind it.
struct KernelHandle {
  alignas(file_handle) std::array<std::byte, sizeof(file_handle) + kernel_bytes_max> room{};
  file_handle* get() { return reinterpret_cast<file_handle*>(room.data()); }
  std::byte* body() { return room.data() + sizeof(file_handle); }
};

class KernelHandles final : public HandleMaker {
 public:
  KernelHandles(const ExportRoot& root, const SipKey& key) : root_(root), key_(key) {}

  Answer<FileHandle> make(int fd, const struct statx&, const FileHandle&, std::string_view) override {
    KernelHandle kernel;
    kernel.get()->handle_bytes = kernel_bytes_max;
    int mount_id = 0;
    if (name_to_handle_at(fd, "", kernel.get(), &mount_id, AT_EMPTY_PATH) != 0) {
      return errno == EOVERFLOW ? Status::serverfault : status_of_errno(errno);
    }
    FileHandle handle;
    std::byte* out = handle.data.bytes.data();
    out[0] = version_byte;
    out[1] = kind_byte;
    out[2] = out[3] = std::byte{0};
    base::store_be(out + 4, static_cast<uint32_t>(kernel.get()->handle_type));
    std::memcpy(out + head_bytes, kernel.body(), kernel.get()->handle_bytes);
    handle.data.size = head_bytes + kernel.get()->handle_bytes;
    sign_handle(key_, handle);
    return handle;
  }

  Answer<Fd> open(const FileHandle& handle) override {
    const std::byte* in = handle.data.bytes.data();
    if (handle.data.size < head_bytes + handle_mac_bytes || in[0] != version_byte || in[1] != kind_byte ||
        !handle_is_signed(key_, handle)) {
      return Status::badhandle;
    }
    KernelHandle kernel;
    kernel.get()->handle_bytes = handle.data.size - head_bytes - handle_mac_bytes;
    kernel.get()->handle_type = static_cast<int>(base::load_be<uint32_t>(in + 4));
    std::memcpy(kernel.body(), in + head_bytes, kernel.get()->handle_bytes);
    Fd fd(open_by_handle_at(root_.fd(), kernel.get(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return errno == EINVAL || errno == ENOENT ? Status::stale : status_of_errno(errno);
    return fd;
  }

  void moved(const FileHandle&, const FileHandle&, std::string_view) override {}

 private:
  const ExportRoot& root_;
  SipKey key_;
};

}  // namespace

void sign_handle(const SipKey& key, FileHandle& handle) {
  uint64_t mac = siphash(key, handle.bytes());
  std::memcpy(handle.data.bytes.data() + handle.data.size, &mac, handle_mac_bytes);
  handle.data.size += handle_mac_bytes;
}

bool handle_is_signed(const SipKey& key, const FileHandle& handle) {
  if (handle.data.size <= handle_mac_bytes) return false;
  nfs4::ByteView body = handle.bytes().first(handle.data.size - handle_mac_bytes);
  uint64_t mac = siphash(key, body);
  return std::memcmp(&mac, body.data() + body.size(), handle_mac_bytes) == 0;
}

Result<std::unique_ptr<HandleMaker>> make_kernel_handles(const ExportRoot& root, const SipKey& key) {
  auto maker = std::make_unique<KernelHandles>(root, key);
  struct statx none {};
  Answer<FileHandle> handle = maker->make(root.fd(), none, {}, {});
  if (!handle.ok()) return Error(ENOTSUP, ErrorOrigin::local, "this file system has no file handles");
  Answer<Fd> fd = maker->open(*handle);
  if (!fd.ok()) return Error(EPERM, ErrorOrigin::local, "this process may not open files by handle");
  return std::unique_ptr<HandleMaker>(std::move(maker));
}

}  // namespace nfsrdma::server
