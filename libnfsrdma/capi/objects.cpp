// SPDX-License-Identifier: Apache-2.0
// The calls of nfsrdma.h that ask about, change or open what a path names.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "capi/path_call.hpp"

namespace nfsrdma::capi {

void fill(nfsrdma_stat_buf& out, const Attributes& a) {
  auto time = [](const Time& t) { return nfsrdma_time{t.seconds, t.nanoseconds, 0}; };
  out = {};
  out.type = static_cast<uint32_t>(a.type);
  out.mode = a.mode;
  out.links = a.links;
  out.uid = a.uid;
  out.gid = a.gid;
  out.rdev_major = a.rdev_major;
  out.rdev_minor = a.rdev_minor;
  out.size_bytes = a.size_bytes;
  out.used_bytes = a.used_bytes;
  out.fileid = a.fileid;
  out.fsid_major = a.fsid_major;
  out.fsid_minor = a.fsid_minor;
  out.change = a.change;
  out.atime = time(a.atime);
  out.mtime = time(a.mtime);
  out.ctime = time(a.ctime);
}

namespace {

// A call on what the path names: next(PathCallPtr, Entry).
template <class Next>
int start_on(nfsrdma_ctx* ctx, const char* path, bool follow, PathCallPtr call, Next next) {
  if (int rc = check_path(ctx, path)) return rc;
  call->path = path;
  walk(std::move(call), follow, next);
  return 0;
}

int no_place(nfsrdma_ctx* ctx) { return fail(ctx, EINVAL, "nowhere to put the result"); }

int start_stat(nfsrdma_ctx* ctx, const char* path, bool follow, nfsrdma_stat_buf* out, Finish finish) {
  if (!out) return no_place(ctx);
  auto call = std::make_unique<PathCall>(ctx, finish);
  call->out = out;
  return start_on(ctx, path, follow, std::move(call), [](PathCallPtr c, Entry entry) {
    fill(*static_cast<nfsrdma_stat_buf*>(c->out), entry.attributes);
    c->finish.done(0);
  });
}

// ACCESS bits of RFC 8881, section 18.1, for access(2)'s.
uint32_t access_bits(int mask, bool directory) {
  uint32_t bits = 0;
  if (mask & 4) bits |= 1;
  if (mask & 2) bits |= directory ? 4 | 8 | 16 : 4 | 8;
  if (mask & 1) bits |= directory ? 2 : 32;
  return bits;
}

int start_access(nfsrdma_ctx* ctx, const char* path, int mask, Finish finish) {
  if (mask & ~7) return fail(ctx, EINVAL, "a mask of 4, 2 and 1 is wanted");
  auto call = std::make_unique<PathCall>(ctx, finish);
  call->mode = static_cast<uint32_t>(mask);
  return start_on(ctx, path, true, std::move(call), [](PathCallPtr c, Entry entry) {
    const bool directory = entry.attributes.type == NodeType::directory;
    const uint32_t wanted = access_bits(static_cast<int>(c->mode), directory);
    if (!wanted) return c->finish.done(0);
    PathCall& p = *c;
    p.mount().access(entry.node, wanted, p.who(), [c = std::move(c), wanted](Result<uint32_t> granted) {
      if (!granted) return c->finish.failed(granted.error());
      if ((*granted & wanted) == wanted) return c->finish.done(0);
      c->finish.failed(Error(EACCES, ErrorOrigin::server, "the server does not grant it"));
    });
  });
}

int start_readlink(nfsrdma_ctx* ctx, const char* path, char* buffer, size_t buffer_bytes, Finish finish) {
  if (!buffer || !buffer_bytes) return no_place(ctx);
  auto call = std::make_unique<PathCall>(ctx, finish);
  call->out = buffer;
  call->out_bytes = buffer_bytes;
  return start_on(ctx, path, false, std::move(call), [](PathCallPtr c, Entry entry) {
    PathCall& p = *c;
    p.mount().read_link(entry.node, p.who(), [c = std::move(c)](Result<std::string> text) {
      if (!text) return c->finish.failed(text.error());
      const size_t n = std::min(text->size(), c->out_bytes - 1);
      char* out = static_cast<char*>(c->out);
      std::memcpy(out, text->data(), n);
      out[n] = 0;
      c->finish.done(static_cast<int64_t>(text->size()));
    });
  });
}

int start_change(nfsrdma_ctx* ctx, const char* path, const AttributeChange& change, Finish finish) {
  auto call = std::make_unique<PathCall>(ctx, finish);
  call->change = change;
  return start_on(ctx, path, true, std::move(call), [](PathCallPtr c, Entry entry) {
    PathCall& p = *c;
    p.mount().set_attributes(entry.node, p.change, p.who(), last_step<Attributes>(std::move(c)));
  });
}

AttributeChange new_mode(uint32_t mode) {
  AttributeChange change;
  change.mode = mode & 07777;
  return change;
}

AttributeChange new_owner(uint32_t uid, uint32_t gid) {
  AttributeChange change;
  if (uid != UINT32_MAX) change.uid = uid;
  if (gid != UINT32_MAX) change.gid = gid;
  return change;
}

AttributeChange new_size(uint64_t size_bytes) {
  AttributeChange change;
  change.size_bytes = size_bytes;
  return change;
}

AttributeChange new_times(const nfsrdma_time* atime, const nfsrdma_time* mtime) {
  AttributeChange change;
  auto set = [](const nfsrdma_time* time, std::optional<Time>& value, bool& now) {
    if (!time) return;
    now = time->nanoseconds == UINT32_MAX;
    if (!now) value = Time{time->seconds, time->nanoseconds};
  };
  set(atime, change.atime, change.atime_now);
  set(mtime, change.mtime, change.mtime_now);
  return change;
}

int start_statvfs(nfsrdma_ctx* ctx, const char* path, nfsrdma_statvfs_buf* out, Finish finish) {
  if (!out) return no_place(ctx);
  auto call = std::make_unique<PathCall>(ctx, finish);
  call->out = out;
  return start_on(ctx, path, true, std::move(call), [](PathCallPtr c, Entry entry) {
    PathCall& p = *c;
    p.mount().file_system_stats(entry.node, p.who(), [c = std::move(c)](Result<FileSystemStats> r) {
      if (!r) return c->finish.failed(r.error());
      *static_cast<nfsrdma_statvfs_buf*>(c->out) = {
          r->total_bytes, r->free_bytes,      r->available_bytes, r->total_files,
          r->free_files,  r->available_files, r->name_bytes_max,  0};
      c->finish.done(0);
    });
  });
}

void finish_open(PathCall& call, const Result<Opened>& opened) {
  if (!opened) return call.finish.failed(opened.error());
  *static_cast<nfsrdma_file**>(call.out) = new nfsrdma_file{call.ctx, opened->file};
  ++call.ctx->handles;
  call.finish.done(0);
}

int start_open(nfsrdma_ctx* ctx, const char* path, uint32_t flags, uint32_t mode, nfsrdma_file** file,
               Finish finish) {
  constexpr uint32_t known = NFSRDMA_OPEN_READ | NFSRDMA_OPEN_WRITE | NFSRDMA_OPEN_TRUNCATE |
                             NFSRDMA_OPEN_EXCLUSIVE | NFSRDMA_OPEN_CREATE;
  // The values that both interfaces share.
  static_assert(int{open_read} == int{NFSRDMA_OPEN_READ} && int{open_write} == int{NFSRDMA_OPEN_WRITE});
  static_assert(int{open_truncate} == int{NFSRDMA_OPEN_TRUNCATE} && int{open_exclusive} == int{NFSRDMA_OPEN_EXCLUSIVE});
  if (!file) return no_place(ctx);
  *file = nullptr;
  if (flags & ~known || !(flags & (NFSRDMA_OPEN_READ | NFSRDMA_OPEN_WRITE)))
    return fail(ctx, EINVAL, "flags must say read or write, and nothing unknown");
  if (flags & NFSRDMA_OPEN_TRUNCATE && !(flags & NFSRDMA_OPEN_WRITE))
    return fail(ctx, EINVAL, "truncating wants NFSRDMA_OPEN_WRITE");
  auto call = std::make_unique<PathCall>(ctx, finish);
  call->out = file;
  call->flags = flags & ~uint32_t{NFSRDMA_OPEN_CREATE};
  call->mode = mode & 07777;
  if (!(flags & NFSRDMA_OPEN_CREATE))
    return start_on(ctx, path, true, std::move(call), [](PathCallPtr c, Entry entry) {
      PathCall& p = *c;
      if (entry.attributes.type == NodeType::directory)
        return p.finish.failed(Error(EISDIR, ErrorOrigin::server, "is a directory"));
      p.mount().open(entry.node, p.flags, p.who(),
                     [c = std::move(c)](Result<Opened> r) { finish_open(*c, r); });
    });
  if (int rc = check_path(ctx, path)) return rc;
  std::string parent = path;
  if (!split(parent, call->name)) return fail(ctx, EINVAL, "the path has no last name");
  return start_on(ctx, parent.c_str(), true, std::move(call), [](PathCallPtr c, Entry entry) {
    PathCall& p = *c;
    p.mount().create(entry.node, p.name, p.flags, p.mode, p.who(),
                     [c = std::move(c)](Result<Opened> r) { finish_open(*c, r); });
  });
}

}  // namespace
}  // namespace nfsrdma::capi

using namespace nfsrdma::capi;

extern "C" {

int nfsrdma_stat(nfsrdma_ctx* ctx, const char* path, nfsrdma_stat_buf* out) {
  return static_cast<int>(blocking(ctx, [&](Finish f) { return start_stat(ctx, path, true, out, f); }));
}

int nfsrdma_stat_async(nfsrdma_ctx* ctx, const char* path, nfsrdma_stat_buf* out, nfsrdma_callback callback,
                       void* private_data) {
  if (int rc = check_callback(ctx, callback)) return rc;
  return start_stat(ctx, path, true, out, Finish{ctx, callback, private_data});
}

int nfsrdma_lstat(nfsrdma_ctx* ctx, const char* path, nfsrdma_stat_buf* out) {
  return static_cast<int>(blocking(ctx, [&](Finish f) { return start_stat(ctx, path, false, out, f); }));
}

int nfsrdma_lstat_async(nfsrdma_ctx* ctx, const char* path, nfsrdma_stat_buf* out, nfsrdma_callback callback,
                        void* private_data) {
  if (int rc = check_callback(ctx, callback)) return rc;
  return start_stat(ctx, path, false, out, Finish{ctx, callback, private_data});
}

int nfsrdma_access(nfsrdma_ctx* ctx, const char* path, int mask) {
  return static_cast<int>(blocking(ctx, [&](Finish f) { return start_access(ctx, path, mask, f); }));
}

int nfsrdma_access_async(nfsrdma_ctx* ctx, const char* path, int mask, nfsrdma_callback callback,
                         void* private_data) {
  if (int rc = check_callback(ctx, callback)) return rc;
  return start_access(ctx, path, mask, Finish{ctx, callback, private_data});
}

int64_t nfsrdma_readlink(nfsrdma_ctx* ctx, const char* path, char* buffer, size_t buffer_bytes) {
  return blocking(ctx, [&](Finish f) { return start_readlink(ctx, path, buffer, buffer_bytes, f); });
}

int nfsrdma_readlink_async(nfsrdma_ctx* ctx, const char* path, char* buffer, size_t buffer_bytes,
                           nfsrdma_callback callback, void* private_data) {
  if (int rc = check_callback(ctx, callback)) return rc;
  return start_readlink(ctx, path, buffer, buffer_bytes, Finish{ctx, callback, private_data});
}

int nfsrdma_chmod(nfsrdma_ctx* ctx, const char* path, uint32_t mode) {
  return static_cast<int>(
      blocking(ctx, [&](Finish f) { return start_change(ctx, path, new_mode(mode), f); }));
}

int nfsrdma_chmod_async(nfsrdma_ctx* ctx, const char* path, uint32_t mode, nfsrdma_callback callback,
                        void* private_data) {
  if (int rc = check_callback(ctx, callback)) return rc;
  return start_change(ctx, path, new_mode(mode), Finish{ctx, callback, private_data});
}

int nfsrdma_chown(nfsrdma_ctx* ctx, const char* path, uint32_t uid, uint32_t gid) {
  return static_cast<int>(
      blocking(ctx, [&](Finish f) { return start_change(ctx, path, new_owner(uid, gid), f); }));
}

int nfsrdma_chown_async(nfsrdma_ctx* ctx, const char* path, uint32_t uid, uint32_t gid,
                        nfsrdma_callback callback, void* private_data) {
  if (int rc = check_callback(ctx, callback)) return rc;
  return start_change(ctx, path, new_owner(uid, gid), Finish{ctx, callback, private_data});
}

int nfsrdma_utimens(nfsrdma_ctx* ctx, const char* path, const nfsrdma_time* atime,
                    const nfsrdma_time* mtime) {
  return static_cast<int>(
      blocking(ctx, [&](Finish f) { return start_change(ctx, path, new_times(atime, mtime), f); }));
}

int nfsrdma_utimens_async(nfsrdma_ctx* ctx, const char* path, const nfsrdma_time* atime,
                          const nfsrdma_time* mtime, nfsrdma_callback callback, void* private_data) {
  if (int rc = check_callback(ctx, callback)) return rc;
  return start_change(ctx, path, new_times(atime, mtime), Finish{ctx, callback, private_data});
}

int nfsrdma_truncate(nfsrdma_ctx* ctx, const char* path, uint64_t size_bytes) {
  return static_cast<int>(
      blocking(ctx, [&](Finish f) { return start_change(ctx, path, new_size(size_bytes), f); }));
}

int nfsrdma_truncate_async(nfsrdma_ctx* ctx, const char* path, uint64_t size_bytes, nfsrdma_callback callback,
                           void* private_data) {
  if (int rc = check_callback(ctx, callback)) return rc;
  return start_change(ctx, path, new_size(size_bytes), Finish{ctx, callback, private_data});
}

int nfsrdma_statvfs(nfsrdma_ctx* ctx, const char* path, nfsrdma_statvfs_buf* out) {
  return static_cast<int>(blocking(ctx, [&](Finish f) { return start_statvfs(ctx, path, out, f); }));
}

int nfsrdma_statvfs_async(nfsrdma_ctx* ctx, const char* path, nfsrdma_statvfs_buf* out,
                          nfsrdma_callback callback, void* private_data) {
  if (int rc = check_callback(ctx, callback)) return rc;
  return start_statvfs(ctx, path, out, Finish{ctx, callback, private_data});
}

int nfsrdma_open(nfsrdma_ctx* ctx, const char* path, uint32_t flags, uint32_t mode, nfsrdma_file** file) {
  return static_cast<int>(
      blocking(ctx, [&](Finish f) { return start_open(ctx, path, flags, mode, file, f); }));
}

int nfsrdma_open_async(nfsrdma_ctx* ctx, const char* path, uint32_t flags, uint32_t mode, nfsrdma_file** file,
                       nfsrdma_callback callback, void* private_data) {
  if (int rc = check_callback(ctx, callback)) return rc;
  return start_open(ctx, path, flags, mode, file, Finish{ctx, callback, private_data});
}

}  // extern "C"
