// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "capi/path_call.hpp"

namespace nfsrdma::capi {
namespace {

constexpr uint32_t page_bytes = 64 * 1024;
constexpr uint32_t empty_pages_max = 16;

int start_opendir(nfsrdma_ctx* ctx, const char* path, nfsrdma_dir** dir, Finish finish) {
  if (int rc = check_path(ctx, path)) return rc;
  if (!dir) return fail(ctx, EINVAL, "nowhere to put the result");
  *dir = nullptr;
  auto call = std::make_unique<PathCall>(ctx, finish);
  call->path = path;
  call->out = dir;
  walk(std::move(call), true, [](PathCallPtr c, Entry entry) {
    if (entry.attributes.type != NodeType::directory)
      return c->finish.failed(Error(ENOTDIR, ErrorOrigin::server, "is not a directory"));
    *static_cast<nfsrdma_dir**>(c->out) = new nfsrdma_dir{.ctx = c->ctx, .node = entry.node, .page = {}};
    ++c->ctx->handles;
    c->finish.done(0);
  });
  return 0;
}

void give(nfsrdma_dir* dir, nfsrdma_dirent* out) {
  const DirectoryEntry& entry = dir->page.entries[dir->at++];
  dir->cookie = entry.cookie;
  out->name = entry.name.c_str();
  out->has_attributes = entry.attributes.type != NodeType::none;
  out->reserved = 0;
  out->attributes = {};
  if (out->has_attributes) fill(out->attributes, entry.attributes);
}

// Ends the call from the page at hand, or asks for the next one.
void next_entry(nfsrdma_dir* dir, nfsrdma_dirent* out, Finish finish) {
  if (dir->at < dir->page.entries.size()) {
    give(dir, out);
    return finish.done(1);
  }
  if (dir->page.eof) return finish.done(0);
  if (dir->empty_pages > empty_pages_max)
    return finish.failed(
        Error(EIO, ErrorOrigin::protocol, "the server keeps sending empty pages of this directory"));
  dir->ctx->mount->read_directory(dir->node, dir->cookie, dir->verifier, page_bytes, true, *dir->ctx->who,
                                  [dir, out, finish](Result<DirectoryPage> page) {
                                    if (!page) return finish.failed(page.error());
                                    dir->page = std::move(*page);
                                    dir->verifier = dir->page.verifier;
                                    dir->at = 0;
                                    dir->empty_pages = dir->page.entries.empty() ? dir->empty_pages + 1 : 0;
                                    next_entry(dir, out, finish);
                                  });
}

int start_readdir(nfsrdma_dir* dir, nfsrdma_dirent* entry, Finish finish) {
  if (!entry) return fail(dir->ctx, EINVAL, "nowhere to put the result");
  // The asynchronous form never calls back from within itself: whoever reads on in the callback would go deeper with
  // every entry of the page.
  if (finish.waiter || (dir->at == dir->page.entries.size() && !dir->page.eof)) {
    next_entry(dir, entry, finish);
  } else {
    Loop* loop = Loop::current();
    (loop ? loop : dir->ctx->mount->loops()[0])->post([=] { next_entry(dir, entry, finish); });
  }
  return 0;
}

}  // namespace
}  // namespace nfsrdma::capi

using namespace nfsrdma::capi;

extern "C" {

int nfsrdma_opendir(nfsrdma_ctx* ctx, const char* path, nfsrdma_dir** dir) {
  return static_cast<int>(blocking(ctx, [&](Finish f) { return start_opendir(ctx, path, dir, f); }));
}

int nfsrdma_opendir_async(nfsrdma_ctx* ctx, const char* path, nfsrdma_dir** dir, nfsrdma_callback callback,
                          void* private_data) {
  if (int rc = check_callback(ctx, callback)) return rc;
  return start_opendir(ctx, path, dir, Finish{ctx, callback, private_data});
}

int nfsrdma_readdir(nfsrdma_dir* dir, nfsrdma_dirent* entry) {
  if (!dir) return -EINVAL;
  return static_cast<int>(blocking(dir->ctx, [&](Finish f) { return start_readdir(dir, entry, f); }));
}

int nfsrdma_readdir_async(nfsrdma_dir* dir, nfsrdma_dirent* entry, nfsrdma_callback callback,
                          void* private_data) {
  if (!dir) return -EINVAL;
  if (int rc = check_callback(dir->ctx, callback)) return rc;
  return start_readdir(dir, entry, Finish{dir->ctx, callback, private_data});
}

void nfsrdma_closedir(nfsrdma_dir* dir) {
  if (!dir) return;
  nfsrdma_ctx* ctx = dir->ctx;
  delete dir;
  --ctx->handles;
}

}  // extern "C"
