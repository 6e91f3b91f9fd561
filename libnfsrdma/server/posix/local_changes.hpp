// SPDX-License-Identifier: Apache-2.0
// Notices what others than clients do to files that a client has a read delegation of (inotify): the delegation must
// be recalled then. It is a notice after the deed, some milliseconds late, where a kernel server's lease would hold
// the other process; and stores through a shared mapping are noticed only when it is closed.
#pragma once

#include <functional>
#include <mutex>
#include <unordered_map>

#include "io/loop.hpp"
#include "server/posix/fd.hpp"
#include "server/store.hpp"

namespace nfsrdma::server {

class LocalChanges final : public ChangeSource, private io::FdHandler {
 public:
  // changed is called on the loop of start().
  explicit LocalChanges(std::function<void(const ObjectRef&)> changed);
  ~LocalChanges() override;
  void start(io::IoLoop& loop) override;
  void stop() override;
  bool begin(const ObjectRef& object) override;
  void end(const ObjectRef& object) override;

 private:
  void on_ready(uint32_t) override;
  void changed_at(int watch);

  std::function<void(const ObjectRef&)> changed_;
  Fd inotify_;
  io::IoLoop* loop_ = nullptr;
  struct Watched {
    ObjectRef object;
    int watch = -1;
    uint32_t users = 0;
  };
  std::mutex mutex_;
  std::unordered_map<const Object*, Watched> by_object_;  // guarded by mutex_, like the next
  std::unordered_map<int, const Object*> by_watch_;
};

}  // namespace nfsrdma::server
