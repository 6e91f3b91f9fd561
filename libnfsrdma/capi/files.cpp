// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "capi/context.hpp"

namespace nfsrdma::capi {

// A handle whose context was disconnected cannot be: that waits for every handle.
int check(nfsrdma_file* file) { return file ? check(file->ctx) : -EINVAL; }

namespace {

Finish finish_of(nfsrdma_file* file, nfsrdma_callback callback, void* private_data) {
  return Finish{file->ctx, callback, private_data};
}

int start_read(nfsrdma_file* file, void* buffer, size_t length, uint64_t offset, Finish finish) {
  if (!buffer && length) return fail(file->ctx, EINVAL, "no buffer to read into");
  file->ctx->mount->read(file->file, offset, std::span(static_cast<std::byte*>(buffer), length),
                         [finish](Result<ReadResult> r) {
                           r ? finish.done(static_cast<int64_t>(r->length)) : finish.failed(r.error());
                         });
  return 0;
}

int check_piece(nfsrdma_file* file, nfsrdma_mem* mem, size_t at, size_t length) {
  if (!mem) return fail(file->ctx, EINVAL, "no memory is given");
  if (mem->ctx != file->ctx) return fail(file->ctx, EINVAL, "the memory is registered with another context");
  if (at > mem->region.size() || length > mem->region.size() - at)
    return fail(file->ctx, EINVAL, "the piece reaches beyond the registered memory");
  return 0;
}

int start_read_mem(nfsrdma_file* file, nfsrdma_mem* mem, size_t at, size_t length, uint64_t offset,
                   Finish finish) {
  if (int rc = check_piece(file, mem, at, length)) return rc;
  file->ctx->mount->read(file->file, offset, mem->region.slice(at, length), [finish](Result<ReadResult> r) {
    r ? finish.done(static_cast<int64_t>(r->length)) : finish.failed(r.error());
  });
  return 0;
}

int check_write(nfsrdma_file* file, uint32_t flags) {
  if (flags & ~uint32_t{NFSRDMA_WRITE_DURABLE}) return fail(file->ctx, EINVAL, "no such flag of a write");
  return 0;
}

Stability stability_of(uint32_t flags) {
  return flags & NFSRDMA_WRITE_DURABLE ? Stability::durable : Stability::unstable;
}

void finish_write(const Finish& finish, const Result<size_t>& r) {
  r ? finish.done(static_cast<int64_t>(*r)) : finish.failed(r.error());
}

int start_write(nfsrdma_file* file, const void* buffer, size_t length, uint64_t offset, uint32_t flags,
                Finish finish) {
  if (int rc = check_write(file, flags)) return rc;
  if (!buffer && length) return fail(file->ctx, EINVAL, "no buffer to write from");
  file->ctx->mount->write(file->file, offset, std::span(static_cast<const std::byte*>(buffer), length),
                          stability_of(flags), [finish](Result<size_t> r) { finish_write(finish, r); });
  return 0;
}

int start_write_mem(nfsrdma_file* file, nfsrdma_mem* mem, size_t at, size_t length, uint64_t offset,
                    uint32_t flags, Finish finish) {
  if (int rc = check_write(file, flags)) return rc;
  if (int rc = check_piece(file, mem, at, length)) return rc;
  file->ctx->mount->write(file->file, offset, mem->region.slice(at, length), stability_of(flags),
                          [finish](Result<size_t> r) { finish_write(finish, r); });
  return 0;
}

int start_stat(nfsrdma_file* file, nfsrdma_stat_buf* out, Finish finish) {
  if (!out) return fail(file->ctx, EINVAL, "nowhere to put the result");
  file->ctx->mount->get_attributes(file->file.node(), *file->ctx->who, [finish, out](Result<Attributes> r) {
    if (r) fill(*out, *r);
    finish.status(r);
  });
  return 0;
}

int start_truncate(nfsrdma_file* file, uint64_t size, Finish finish) {
  AttributeChange change;
  change.size_bytes = size;
  file->ctx->mount->set_attributes(file->file, change, *file->ctx->who,
                                   [finish](Result<Attributes> r) { finish.status(r); });
  return 0;
}

int start_sync(nfsrdma_file* file, Finish finish) {
  file->ctx->mount->sync(file->file, [finish](Result<void> r) { finish.status(r); });
  return 0;
}

int start_close(nfsrdma_file* file, Finish finish) {
  nfsrdma_ctx* ctx = file->ctx;
  File handle = std::move(file->file);
  delete file;
  ctx->mount->close(handle, [finish](Result<void> r) {
    // Before the callback, which may disconnect.
    --finish.ctx->handles;
    finish.status(r);
  });
  return 0;
}

}  // namespace
}  // namespace nfsrdma::capi

using namespace nfsrdma::capi;

extern "C" {

int64_t nfsrdma_pread(nfsrdma_file* file, void* buffer, size_t length_bytes, uint64_t offset_bytes) {
  if (int rc = check(file)) return rc;
  return blocking(file->ctx,
                  [&](Finish f) { return start_read(file, buffer, length_bytes, offset_bytes, f); });
}

int nfsrdma_pread_async(nfsrdma_file* file, void* buffer, size_t length_bytes, uint64_t offset_bytes,
                        nfsrdma_callback callback, void* private_data) {
  if (int rc = check(file)) return rc;
  if (int rc = check_callback(file->ctx, callback)) return rc;
  return start_read(file, buffer, length_bytes, offset_bytes, finish_of(file, callback, private_data));
}

int64_t nfsrdma_pread_mem(nfsrdma_file* file, nfsrdma_mem* mem, size_t mem_offset_bytes, size_t length_bytes,
                          uint64_t offset_bytes) {
  if (int rc = check(file)) return rc;
  return blocking(file->ctx, [&](Finish f) {
    return start_read_mem(file, mem, mem_offset_bytes, length_bytes, offset_bytes, f);
  });
}

int nfsrdma_pread_mem_async(nfsrdma_file* file, nfsrdma_mem* mem, size_t mem_offset_bytes,
                            size_t length_bytes, uint64_t offset_bytes, nfsrdma_callback callback,
                            void* private_data) {
  if (int rc = check(file)) return rc;
  if (int rc = check_callback(file->ctx, callback)) return rc;
  return start_read_mem(file, mem, mem_offset_bytes, length_bytes, offset_bytes,
                        finish_of(file, callback, private_data));
}

int64_t nfsrdma_pwrite(nfsrdma_file* file, const void* buffer, size_t length_bytes, uint64_t offset_bytes,
                       uint32_t flags) {
  if (int rc = check(file)) return rc;
  return blocking(file->ctx,
                  [&](Finish f) { return start_write(file, buffer, length_bytes, offset_bytes, flags, f); });
}

int nfsrdma_pwrite_async(nfsrdma_file* file, const void* buffer, size_t length_bytes, uint64_t offset_bytes,
                         uint32_t flags, nfsrdma_callback callback, void* private_data) {
  if (int rc = check(file)) return rc;
  if (int rc = check_callback(file->ctx, callback)) return rc;
  return start_write(file, buffer, length_bytes, offset_bytes, flags,
                     finish_of(file, callback, private_data));
}

int64_t nfsrdma_pwrite_mem(nfsrdma_file* file, nfsrdma_mem* mem, size_t mem_offset_bytes, size_t length_bytes,
                           uint64_t offset_bytes, uint32_t flags) {
  if (int rc = check(file)) return rc;
  return blocking(file->ctx, [&](Finish f) {
    return start_write_mem(file, mem, mem_offset_bytes, length_bytes, offset_bytes, flags, f);
  });
}

int nfsrdma_pwrite_mem_async(nfsrdma_file* file, nfsrdma_mem* mem, size_t mem_offset_bytes,
                             size_t length_bytes, uint64_t offset_bytes, uint32_t flags,
                             nfsrdma_callback callback, void* private_data) {
  if (int rc = check(file)) return rc;
  if (int rc = check_callback(file->ctx, callback)) return rc;
  return start_write_mem(file, mem, mem_offset_bytes, length_bytes, offset_bytes, flags,
                         finish_of(file, callback, private_data));
}

int nfsrdma_fstat(nfsrdma_file* file, nfsrdma_stat_buf* out) {
  if (int rc = check(file)) return rc;
  return static_cast<int>(blocking(file->ctx, [&](Finish f) { return start_stat(file, out, f); }));
}

int nfsrdma_fstat_async(nfsrdma_file* file, nfsrdma_stat_buf* out, nfsrdma_callback callback,
                        void* private_data) {
  if (int rc = check(file)) return rc;
  if (int rc = check_callback(file->ctx, callback)) return rc;
  return start_stat(file, out, finish_of(file, callback, private_data));
}

int nfsrdma_ftruncate(nfsrdma_file* file, uint64_t size_bytes) {
  if (int rc = check(file)) return rc;
  return static_cast<int>(blocking(file->ctx, [&](Finish f) { return start_truncate(file, size_bytes, f); }));
}

int nfsrdma_ftruncate_async(nfsrdma_file* file, uint64_t size_bytes, nfsrdma_callback callback,
                            void* private_data) {
  if (int rc = check(file)) return rc;
  if (int rc = check_callback(file->ctx, callback)) return rc;
  return start_truncate(file, size_bytes, finish_of(file, callback, private_data));
}

int nfsrdma_fsync(nfsrdma_file* file) {
  if (int rc = check(file)) return rc;
  return static_cast<int>(blocking(file->ctx, [&](Finish f) { return start_sync(file, f); }));
}

int nfsrdma_fsync_async(nfsrdma_file* file, nfsrdma_callback callback, void* private_data) {
  if (int rc = check(file)) return rc;
  if (int rc = check_callback(file->ctx, callback)) return rc;
  return start_sync(file, finish_of(file, callback, private_data));
}

int nfsrdma_close(nfsrdma_file* file) {
  if (int rc = check(file)) return rc;
  nfsrdma_ctx* ctx = file->ctx;
  return static_cast<int>(blocking(ctx, [&](Finish f) { return start_close(file, f); }));
}

int nfsrdma_close_async(nfsrdma_file* file, nfsrdma_callback callback, void* private_data) {
  if (int rc = check(file)) return rc;
  if (int rc = check_callback(file->ctx, callback)) return rc;
  return start_close(file, finish_of(file, callback, private_data));
}

}  // extern "C"
