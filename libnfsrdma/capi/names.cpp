// SPDX-License-Identifier: Apache-2.0
// The calls of nfsrdma.h that change names.
#include <cerrno>

#include "capi/path_call.hpp"

namespace nfsrdma::capi {

int check_path(nfsrdma_ctx* ctx, const char* path) {
  if (int rc = check(ctx)) return rc;
  if (!path || path[0] != '/') return fail(ctx, EINVAL, "a path begins with \"/\"");
  return 0;
}

bool split(std::string& path, std::string& name) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const size_t slash = path.rfind('/');
  name = path.substr(slash + 1);
  path.resize(slash == 0 ? 1 : slash);
  return !name.empty() && name != "." && name != "..";
}

namespace {

// A call on a name in a directory: next(PathCallPtr) once call->parent is known.
template <class Next>
int start_in_parent(nfsrdma_ctx* ctx, const char* path, PathCallPtr call, Next next) {
  if (int rc = check_path(ctx, path)) return rc;
  call->path = path;
  if (!split(call->path, call->name)) return fail(ctx, EINVAL, "the path has no last name");
  walk(std::move(call), true, [next](PathCallPtr c, Entry parent) {
    c->parent = std::move(parent.node);
    next(std::move(c));
  });
  return 0;
}

int start_mkdir(nfsrdma_ctx* ctx, const char* path, uint32_t mode, Finish finish) {
  auto call = std::make_unique<PathCall>(ctx, finish);
  call->mode = mode;
  return start_in_parent(ctx, path, std::move(call), [](PathCallPtr c) {
    PathCall& p = *c;
    p.mount().make_directory(p.parent, p.name, p.mode, p.who(), last_step<Entry>(std::move(c)));
  });
}

// NFS has one REMOVE for both; which of them is meant is for us to see.
int start_remove(nfsrdma_ctx* ctx, const char* path, bool directory, Finish finish) {
  auto call = std::make_unique<PathCall>(ctx, finish);
  call->flags = directory;
  return start_in_parent(ctx, path, std::move(call), [](PathCallPtr c) {
    PathCall& p = *c;
    p.mount().lookup(p.parent, p.name, p.who(), [c = std::move(c)](Result<Entry> found) mutable {
      if (!found) return c->finish.failed(found.error());
      const bool is_directory = found->attributes.type == NodeType::directory;
      if (is_directory && !c->flags)
        return c->finish.failed(Error(EISDIR, ErrorOrigin::server, "is a directory"));
      if (!is_directory && c->flags)
        return c->finish.failed(Error(ENOTDIR, ErrorOrigin::server, "is not a directory"));
      PathCall& q = *c;
      q.mount().remove(q.parent, q.name, q.who(), last_step<void>(std::move(c)));
    });
  });
}

int start_rename(nfsrdma_ctx* ctx, const char* from, const char* to, Finish finish) {
  if (int rc = check_path(ctx, to)) return rc;
  auto call = std::make_unique<PathCall>(ctx, finish);
  call->to_path = to;
  if (!split(call->to_path, call->to_name)) return fail(ctx, EINVAL, "the path has no last name");
  return start_in_parent(ctx, from, std::move(call), [](PathCallPtr c) {
    c->path.swap(c->to_path);
    walk(std::move(c), true, [](PathCallPtr d, Entry to_parent) {
      PathCall& p = *d;
      p.mount().rename(p.parent, p.name, to_parent.node, p.to_name, p.who(), last_step<void>(std::move(d)));
    });
  });
}

int start_symlink(nfsrdma_ctx* ctx, const char* target, const char* path, Finish finish) {
  if (int rc = check(ctx)) return rc;
  if (!target || !*target) return fail(ctx, EINVAL, "a link wants a text");
  auto call = std::make_unique<PathCall>(ctx, finish);
  call->to_path = target;
  return start_in_parent(ctx, path, std::move(call), [](PathCallPtr c) {
    PathCall& p = *c;
    p.mount().make_symlink(p.parent, p.name, p.to_path, p.who(), last_step<Entry>(std::move(c)));
  });
}

int start_link(nfsrdma_ctx* ctx, const char* from, const char* to, Finish finish) {
  if (int rc = check_path(ctx, from)) return rc;
  auto call = std::make_unique<PathCall>(ctx, finish);
  call->to_path = from;
  return start_in_parent(ctx, to, std::move(call), [](PathCallPtr c) {
    c->path.swap(c->to_path);
    walk(std::move(c), false, [](PathCallPtr d, Entry file) {
      PathCall& p = *d;
      p.mount().make_link(file.node, p.parent, p.name, p.who(), last_step<Entry>(std::move(d)));
    });
  });
}

}  // namespace
}  // namespace nfsrdma::capi

using namespace nfsrdma::capi;

extern "C" {

int nfsrdma_mkdir(nfsrdma_ctx* ctx, const char* path, uint32_t mode) {
  return static_cast<int>(blocking(ctx, [&](Finish f) { return start_mkdir(ctx, path, mode, f); }));
}

int nfsrdma_mkdir_async(nfsrdma_ctx* ctx, const char* path, uint32_t mode, nfsrdma_callback callback,
                        void* private_data) {
  if (int rc = check_callback(ctx, callback)) return rc;
  return start_mkdir(ctx, path, mode, Finish{ctx, callback, private_data});
}

int nfsrdma_rmdir(nfsrdma_ctx* ctx, const char* path) {
  return static_cast<int>(blocking(ctx, [&](Finish f) { return start_remove(ctx, path, true, f); }));
}

int nfsrdma_rmdir_async(nfsrdma_ctx* ctx, const char* path, nfsrdma_callback callback, void* private_data) {
  if (int rc = check_callback(ctx, callback)) return rc;
  return start_remove(ctx, path, true, Finish{ctx, callback, private_data});
}

int nfsrdma_unlink(nfsrdma_ctx* ctx, const char* path) {
  return static_cast<int>(blocking(ctx, [&](Finish f) { return start_remove(ctx, path, false, f); }));
}

int nfsrdma_unlink_async(nfsrdma_ctx* ctx, const char* path, nfsrdma_callback callback, void* private_data) {
  if (int rc = check_callback(ctx, callback)) return rc;
  return start_remove(ctx, path, false, Finish{ctx, callback, private_data});
}

int nfsrdma_rename(nfsrdma_ctx* ctx, const char* from, const char* to) {
  return static_cast<int>(blocking(ctx, [&](Finish f) { return start_rename(ctx, from, to, f); }));
}

int nfsrdma_rename_async(nfsrdma_ctx* ctx, const char* from, const char* to, nfsrdma_callback callback,
                         void* private_data) {
  if (int rc = check_callback(ctx, callback)) return rc;
  return start_rename(ctx, from, to, Finish{ctx, callback, private_data});
}

int nfsrdma_symlink(nfsrdma_ctx* ctx, const char* target, const char* path) {
  return static_cast<int>(blocking(ctx, [&](Finish f) { return start_symlink(ctx, target, path, f); }));
}

int nfsrdma_symlink_async(nfsrdma_ctx* ctx, const char* target, const char* path, nfsrdma_callback callback,
                          void* private_data) {
  if (int rc = check_callback(ctx, callback)) return rc;
  return start_symlink(ctx, target, path, Finish{ctx, callback, private_data});
}

int nfsrdma_link(nfsrdma_ctx* ctx, const char* from, const char* to) {
  return static_cast<int>(blocking(ctx, [&](Finish f) { return start_link(ctx, from, to, f); }));
}

int nfsrdma_link_async(nfsrdma_ctx* ctx, const char* from, const char* to, nfsrdma_callback callback,
                       void* private_data) {
  if (int rc = check_callback(ctx, callback)) return rc;
  return start_link(ctx, from, to, Finish{ctx, callback, private_data});
}

}  // extern "C"
