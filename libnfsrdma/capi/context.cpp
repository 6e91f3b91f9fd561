// SPDX-License-Identifier: Apache-2.0
#include "capi/context.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/no_thread.hpp"

nfsrdma_ctx::~nfsrdma_ctx() {
  mount.reset();
  if (event_fd >= 0) ::close(event_fd);
}

namespace nfsrdma::capi {
namespace {

// The failure that nfsrdma_strerror() tells of.
struct LastError {
  const nfsrdma_ctx* ctx = nullptr;
  std::string text;
  ErrorOrigin origin = ErrorOrigin::local;
};

thread_local LastError last_error;

}  // namespace

int fail(const nfsrdma_ctx* ctx, const Error& error) {
  const int errno_value = error.errno_value() > 0 ? error.errno_value() : EIO;
  last_error.ctx = ctx;
  last_error.text = error.text().empty() ? std::strerror(errno_value) : error.text();
  last_error.origin = error.origin();
  return -errno_value;
}

int fail(const nfsrdma_ctx* ctx, int errno_value, std::string text) {
  return fail(ctx, Error(errno_value, ErrorOrigin::usage, std::move(text)));
}

void Finish::end(int64_t result, std::optional<Error> error) const {
  if (waiter) {
    std::lock_guard lock(waiter->mutex);
    waiter->result = result;
    waiter->error = std::move(error);
    waiter->done = true;
    waiter->changed.notify_one();
    return;
  }
  if (ctx->event_fd >= 0) {
    std::lock_guard lock(ctx->pending_mutex);
    const bool first = ctx->pending.empty();
    ctx->pending.push_back({callback, private_data, result, std::move(error)});
    const uint64_t one = 1;
    // The counter cannot overflow: it is raised once per emptying.
    if (first) [[maybe_unused]]
      ssize_t n = ::write(ctx->event_fd, &one, sizeof one);
    return;
  }
  if (error) fail(ctx, *error);
  callback(ctx, result, private_data);
}

int check(nfsrdma_ctx* ctx) {
  if (!ctx) return -EINVAL;
  if (!ctx->mount) return fail(ctx, ENOTCONN, "not connected: nfsrdma_connect() comes first");
  return 0;
}

int check_callback(nfsrdma_ctx* ctx, nfsrdma_callback callback) {
  if (!callback) return fail(ctx, EINVAL, "an asynchronous call wants a callback");
  return 0;
}

namespace {

// An older program's structure is shorter; what it lacks is 0.
Result<nfsrdma_options> full_options(const nfsrdma_options* given) {
  nfsrdma_options options = NFSRDMA_OPTIONS_INIT;
  constexpr size_t least = offsetof(nfsrdma_options, option_list);
  if (!given || given->struct_size < least)
    return Error(EINVAL, ErrorOrigin::usage,
                 "nfsrdma_options without its struct_size; begin with NFSRDMA_OPTIONS_INIT");
  std::memcpy(&options, given, std::min(given->struct_size, sizeof options));
  if (options.flags & ~uint32_t{NFSRDMA_CALLBACKS_BY_SERVICE} || options.reserved)
    return Error(EINVAL, ErrorOrigin::usage, "nfsrdma_options asks for what this release does not know");
  if (!options.url) return Error(EINVAL, ErrorOrigin::usage, "nfsrdma_options without a url");
  return options;
}

Result<Options> client_options(const nfsrdma_options& given) {
  Options options;
  if (auto r = apply_source(options, given.url); !r) return r.error();
  std::string list = given.option_list ? given.option_list : "";
  auto add = [&](const char* name, uint32_t value) {
    if (value) list += std::string(list.empty() ? "" : ",") + name + "=" + std::to_string(value);
  };
  add("nconnect", given.nconnect);
  add("rsize", given.rsize_bytes);
  add("wsize", given.wsize_bytes);
  if (auto r = apply_option_list(options, list); !r) return r.error();
  if (given.connect_timeout_ms) options.connect_timeout_ms = given.connect_timeout_ms;
  return options;
}

Result<void> connect(nfsrdma_ctx* ctx, const Options& options) {
  auto mount = Mount::connect(options);
  if (!mount) return mount.error();
  ctx->mount = std::move(*mount);
  ctx->who = ctx->mount->default_credentials();
  return {};
}

// Everything before the connection itself.
Result<Options> prepare(nfsrdma_ctx* ctx, const nfsrdma_options* given) {
  if (ctx->mount) return Error(EISCONN, ErrorOrigin::usage, "the context is connected already");
  auto full = full_options(given);
  if (!full) return full.error();
  auto options = client_options(*full);
  if (!options) return options.error();
  if (full->flags & NFSRDMA_CALLBACKS_BY_SERVICE && ctx->event_fd < 0) {
    ctx->event_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ctx->event_fd < 0)
      return Error(errno, ErrorOrigin::local, std::string("eventfd: ") + std::strerror(errno));
  }
  return options;
}

Result<void> disconnect(nfsrdma_ctx* ctx) {
  if (const uint32_t open = ctx->handles)
    return Error(EBUSY, ErrorOrigin::usage,
                 std::to_string(open) + " handles of the context have not been ended");
  auto result = ctx->mount->shut_down();
  ctx->mount.reset();
  return result;
}

// At most one such thread at a time; the one before has called back.
template <class Work>
void on_thread(nfsrdma_ctx* ctx, Finish finish, Work work) {
  if (ctx->connector.get_id() == std::this_thread::get_id())
    ctx->connector.detach();  // called from its callback, after which it touches nothing of the context
  else if (ctx->connector.joinable())
    ctx->connector.join();
  try {
    ctx->connector = std::thread([finish, work = std::move(work)]() mutable { finish.status(work()); });
  } catch (const std::system_error& failed) {
    finish.status(Result<void>(base::no_thread(failed)));
  }
}

}  // namespace
}  // namespace nfsrdma::capi

using namespace nfsrdma;
using namespace nfsrdma::capi;

extern "C" {

nfsrdma_ctx* nfsrdma_new(void) { return new (std::nothrow) nfsrdma_ctx; }

int nfsrdma_connect(nfsrdma_ctx* ctx, const nfsrdma_options* options) {
  if (!ctx) return -EINVAL;
  if (Loop::current()) return fail(ctx, EDEADLK, "a blocking call inside a callback would wait for itself");
  auto prepared = prepare(ctx, options);
  if (!prepared) return fail(ctx, prepared.error());
  if (auto r = connect(ctx, *prepared); !r) return fail(ctx, r.error());
  return 0;
}

int nfsrdma_connect_async(nfsrdma_ctx* ctx, const nfsrdma_options* options, nfsrdma_callback callback,
                          void* private_data) {
  if (!ctx) return -EINVAL;
  if (int rc = check_callback(ctx, callback)) return rc;
  auto prepared = prepare(ctx, options);
  if (!prepared) return fail(ctx, prepared.error());
  on_thread(ctx, Finish{ctx, callback, private_data},
            [ctx, o = std::move(*prepared)] { return connect(ctx, o); });
  return 0;
}

int nfsrdma_disconnect(nfsrdma_ctx* ctx) {
  if (int rc = check(ctx)) return rc;
  if (Loop::current()) return fail(ctx, EDEADLK, "a blocking call inside a callback would wait for itself");
  if (auto r = disconnect(ctx); !r) return fail(ctx, r.error());
  return 0;
}

int nfsrdma_disconnect_async(nfsrdma_ctx* ctx, nfsrdma_callback callback, void* private_data) {
  if (int rc = check(ctx)) return rc;
  if (int rc = check_callback(ctx, callback)) return rc;
  on_thread(ctx, Finish{ctx, callback, private_data}, [ctx] { return disconnect(ctx); });
  return 0;
}

void nfsrdma_free(nfsrdma_ctx* ctx) {
  if (!ctx) return;
  if (ctx->connector.joinable()) ctx->connector.join();
  if (const uint32_t open = ctx->handles) {
    log_unfreed(open);
    return;
  }
  delete ctx;
}

const char* nfsrdma_strerror(const nfsrdma_ctx* ctx) {
  return last_error.ctx == ctx ? last_error.text.c_str() : "";
}

int nfsrdma_error_origin(const nfsrdma_ctx* ctx) {
  return last_error.ctx == ctx ? static_cast<int>(last_error.origin) : NFSRDMA_ORIGIN_LOCAL;
}

int nfsrdma_set_credentials(nfsrdma_ctx* ctx, uint32_t uid, uint32_t gid, const uint32_t* groups,
                            size_t group_count) {
  if (int rc = check(ctx)) return rc;
  if (group_count && !groups) return fail(ctx, EINVAL, "groups are counted, but none are given");
  ctx->who = Credentials::sys(uid, gid, {groups, group_count});
  return 0;
}

int nfsrdma_get_fd(nfsrdma_ctx* ctx) {
  if (!ctx) return -EINVAL;
  if (ctx->event_fd < 0)
    return fail(ctx, EINVAL, "the context was not connected with NFSRDMA_CALLBACKS_BY_SERVICE");
  return ctx->event_fd;
}

int nfsrdma_service(nfsrdma_ctx* ctx) {
  if (int rc = nfsrdma_get_fd(ctx); rc < 0) return rc;
  {
    std::lock_guard lock(ctx->pending_mutex);
    uint64_t count = 0;
    [[maybe_unused]] ssize_t n = ::read(ctx->event_fd, &count, sizeof count);
    ctx->in_service.swap(ctx->pending);
  }
  int called = 0;
  for (Pending& pending : ctx->in_service) {
    if (pending.error) fail(ctx, *pending.error);
    pending.callback(ctx, pending.result, pending.private_data);
    ++called;
  }
  ctx->in_service.clear();
  return called;
}

}  // extern "C"
