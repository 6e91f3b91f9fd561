// SPDX-License-Identifier: Apache-2.0
// How file handles are made and found again.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>
#include <string_view>

#include "nfs4/types.hpp"
#include "nfsrdma/error.hpp"
#include "server/answer.hpp"
#include "server/posix/export_root.hpp"
#include "server/posix/fd.hpp"
#include "server/siphash.hpp"

namespace nfsrdma::server {

// Thread safe.
class HandleMaker {
 public:
  virtual ~HandleMaker() = default;
  // The handle of the object behind fd (O_PATH), which has attributes `st` and is called `name` in the object whose
  // handle is `parent` (empty for the root).
  virtual Answer<nfs4::FileHandle> make(int fd, const struct statx& st, const nfs4::FileHandle& parent,
                                        std::string_view name) = 0;
  // An O_PATH descriptor of the object: badhandle when this server never made it, stale when it is gone. The caller
  // has the process's own identity and checks the place of what was opened. May block.
  virtual Answer<Fd> open(const nfs4::FileHandle& handle) = 0;
  // An object has another name now.
  virtual void moved(const nfs4::FileHandle& handle, const nfs4::FileHandle& parent, std::string_view name) = 0;
};

// Handles of the kernel (name_to_handle_at), signed so that a forged one is told apart. They survive restarts when
// the key does. ENOTSUP when the file system has none, EPERM when this process may not open by handle.
Result<std::unique_ptr<HandleMaker>> make_kernel_handles(const ExportRoot& root, const SipKey& key);

// Handles out of an index of inode numbers and birth times, for processes that may not open by handle. With a
// directory the index is kept in it and handles survive restarts; without ("") old ones are stale.
Result<std::unique_ptr<HandleMaker>> make_index_handles(const ExportRoot& root, const SipKey& key,
                                                        const std::string& state_dir);

// Appends the signature, and checks it.
inline constexpr uint32_t handle_mac_bytes = 8;
void sign_handle(const SipKey& key, nfs4::FileHandle& handle);
bool handle_is_signed(const SipKey& key, const nfs4::FileHandle& handle);

}  // namespace nfsrdma::server
