// SPDX-License-Identifier: Apache-2.0
// Calls that begin with a path: walk to the object, or to what holds it, then go on.
#pragma once

#include <memory>
#include <string>

#include "capi/context.hpp"

namespace nfsrdma::capi {

// What one such call carries from step to step, on the heap, since a callback holds a pointer and no more.
struct PathCall {
  PathCall(nfsrdma_ctx* context, Finish end) : ctx(context), finish(end) {}

  nfsrdma_ctx* ctx;
  Finish finish;
  std::string path, name;  // a name is the last component of the path that it was taken from
  std::string to_path, to_name;
  Node parent;
  AttributeChange change;
  void* out = nullptr;
  size_t out_bytes = 0;
  uint32_t flags = 0, mode = 0;

  Mount& mount() { return *ctx->mount; }
  const Credentials& who() { return *ctx->who; }
};

using PathCallPtr = std::unique_ptr<PathCall>;

// 0, or a negative errno: no text, or no absolute path.
int check_path(nfsrdma_ctx* ctx, const char* path);
// Cuts the last component off a path; false for the root and for "." and "..".
bool split(std::string& path, std::string& name);

// next(PathCallPtr, Entry) runs on a loop; a failure on the way ends the call.
template <class Next>
void walk(PathCallPtr call, bool follow, Next next) {
  PathCall& c = *call;
  c.mount().resolve(c.path, follow, c.who(), [call = std::move(call), next](Result<Entry> r) mutable {
    if (!r) return call->finish.failed(r.error());
    next(std::move(call), std::move(*r));
  });
}

// For done(Result<T>) of a last step: success is 0.
template <class T>
auto last_step(PathCallPtr call) {
  return [call = std::move(call)](Result<T> r) { call->finish.status(r); };
}

}  // namespace nfsrdma::capi
