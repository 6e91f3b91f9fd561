// SPDX-License-Identifier: Apache-2.0
// Names go away: unlink, rmdir, rename.
#include "ops/ops.hpp"

namespace nfsrdma::fuse {
namespace {

// NFS has one REMOVE for files and directories. The kernel has looked at the type it remembers; the server's present
// one decides.
Detached unlink(RequestPtr request, InodePtr directory, std::string name) {
  Wait<Entry> looked;
  request->mount.lookup(directory->node, name, request->who(), looked.done());
  Result<Entry> victim = co_await looked;
  if (!victim || victim->attributes.type == NodeType::directory) {
    request->error(victim ? EISDIR : victim.error().errno_value());
    co_return;
  }
  auto keeping = keep_open_file(*request, directory, name, *victim, false);
  Result<std::optional<Kept>> kept = co_await keeping;
  if (!kept) {
    request->error(kept.error());
    co_return;
  }
  if (kept->has_value()) {
    request->ok();
    auto settling = settle_silly(*request, **kept, name, true);
    co_await settling;
    co_return;
  }
  Wait<void> wait;
  request->mount.remove(directory->node, name, request->who(), wait.done());
  Result<void> removed = co_await wait;
  request->error(removed ? 0 : removed.error().errno_value());
}

Detached rmdir(RequestPtr request, InodePtr directory, std::string name) {
  Wait<Entry> looked;
  request->mount.lookup(directory->node, name, request->who(), looked.done());
  Result<Entry> victim = co_await looked;
  if (!victim || victim->attributes.type != NodeType::directory) {
    request->error(victim ? ENOTDIR : victim.error().errno_value());
    co_return;
  }
  Wait<void> wait;
  request->mount.remove(directory->node, name, request->who(), wait.done());
  Result<void> removed = co_await wait;
  request->error(removed ? 0 : removed.error().errno_value());
}

struct Place {
  InodePtr directory;
  std::string name;
};

// What the new name stands for now must go on working where it is open.
Task<Result<std::optional<Kept>>> keep_replaced(Request& request, Place to) {
  std::optional<Kept> nothing;
  if (request.fs.opens == 0) co_return nothing;
  Wait<Entry> looked;
  request.mount.lookup(to.directory->node, to.name, request.who(), looked.done());
  Result<Entry> victim = co_await looked;
  if (!victim || victim->attributes.type == NodeType::directory) co_return nothing;
  auto keeping = keep_open_file(request, to.directory, to.name, *victim, true);
  Result<std::optional<Kept>> kept = co_await keeping;
  co_return kept;
}

Detached rename(RequestPtr request, Place from, Place to) {
  auto keeping = keep_replaced(*request, to);
  Result<std::optional<Kept>> kept = co_await keeping;
  if (!kept) {
    request->error(kept.error());
    co_return;
  }
  Wait<void> wait;
  request->mount.rename(from.directory->node, from.name, to.directory->node, to.name, request->who(), wait.done());
  Result<void> renamed = co_await wait;
  if (kept->has_value()) {
    auto settling = settle_silly(*request, **kept, to.name, renamed.ok());
    co_await settling;
  }
  request->error(renamed ? 0 : renamed.error().errno_value());
}

}  // namespace

void ops::unlink(fuse_req_t raw, fuse_ino_t parent, const char* name) {
  auto request = std::make_unique<Request>(raw);
  if (InodePtr directory = directory_or_answer(*request, parent, name))
    fuse::unlink(std::move(request), std::move(directory), name);
}

void ops::rmdir(fuse_req_t raw, fuse_ino_t parent, const char* name) {
  auto request = std::make_unique<Request>(raw);
  if (InodePtr directory = directory_or_answer(*request, parent, name))
    fuse::rmdir(std::move(request), std::move(directory), name);
}

void ops::rename(fuse_req_t raw, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
                 unsigned flags) {
  auto request = std::make_unique<Request>(raw);
  // RENAME of NFS can neither exchange nor refuse to replace.
  if (flags != 0) return void(request->error(EINVAL));
  InodePtr from = directory_or_answer(*request, parent, name);
  InodePtr to = from ? directory_or_answer(*request, new_parent, new_name) : nullptr;
  if (!to) return;
  fuse::rename(std::move(request), Place{std::move(from), name}, Place{std::move(to), new_name});
}

}  // namespace nfsrdma::fuse
