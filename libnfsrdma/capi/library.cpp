// SPDX-License-Identifier: Apache-2.0
// What asks no server: versions, log, memory, facts and counters.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/log.hpp"
#include "capi/context.hpp"
#include "nfsrdma/log.hpp"
#include "nfsrdma/version.hpp"

namespace nfsrdma::capi {
namespace {

std::atomic<nfsrdma_log_callback> log_callback{nullptr};

void pass_on(LogLevel level, std::string_view part, std::string_view line) {
  nfsrdma_log_callback callback = log_callback.load(std::memory_order_acquire);
  if (callback) callback(static_cast<int>(level), std::string(part).c_str(), std::string(line).c_str());
}

static_assert(static_cast<int>(LogLevel::off) == NFSRDMA_LOG_OFF);
static_assert(static_cast<int>(ErrorOrigin::server) == NFSRDMA_ORIGIN_SERVER);
static_assert(static_cast<int>(NodeType::fifo) == NFSRDMA_TYPE_FIFO);

char* copy_text(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace

void log_unfreed(uint32_t handles) {
  base::log(base::LogLevel::error, "capi",
            "nfsrdma_free: %u handles have not been ended, so nothing is freed", handles);
}

}  // namespace nfsrdma::capi

using namespace nfsrdma;
using namespace nfsrdma::capi;

extern "C" {

const char* nfsrdma_version(void) { return version(); }

uint32_t nfsrdma_version_number(void) { return NFSRDMA_VERSION_NUMBER; }

void nfsrdma_set_log(nfsrdma_log_callback callback, int lowest) {
  log_callback.store(callback, std::memory_order_release);
  const int level = std::clamp(lowest, int{NFSRDMA_LOG_TRACE}, int{NFSRDMA_LOG_OFF});
  set_log_sink(callback ? pass_on : nullptr, static_cast<LogLevel>(level));
}

int nfsrdma_get_info(nfsrdma_ctx* ctx, nfsrdma_info* info) {
  if (int rc = check(ctx)) return rc;
  if (!info || info->struct_size < offsetof(nfsrdma_info, rsize_bytes))
    return fail(ctx, EINVAL, "nfsrdma_info without its struct_size");
  const MountInfo mount = ctx->mount->info();
  nfsrdma_info full{};
  full.struct_size = info->struct_size;
  full.minor_version = mount.minor_version;
  full.connections = static_cast<uint32_t>(mount.paths.size());
  full.rsize_bytes = mount.rsize_bytes;
  full.wsize_bytes = mount.wsize_bytes;
  full.lease_s = mount.lease_s;
  full.slots = mount.slots;
  full.name_bytes_max = mount.name_bytes_max;
  full.file_size_max = mount.file_size_max;
  full.pool_bytes_max = mount.pool_bytes_max;
  full.pool_bytes_registered = ctx->mount->stats().pool_bytes_registered;
  std::memcpy(info, &full, std::min(info->struct_size, sizeof full));
  return 0;
}

char* nfsrdma_stats_json(nfsrdma_ctx* ctx) {
  if (check(ctx) != 0) return nullptr;
  return copy_text(render_json(ctx->mount->stats()));
}

char* nfsrdma_mountstats(nfsrdma_ctx* ctx, const char* mount_point) {
  if (check(ctx) != 0) return nullptr;
  return copy_text(render_mountstats(ctx->mount->stats(), mount_point ? mount_point : "/"));
}

void nfsrdma_free_text(char* text) { std::free(text); }

int nfsrdma_mem_register(nfsrdma_ctx* ctx, void* address, size_t length_bytes, int kind, uint32_t flags,
                         nfsrdma_mem** mem) {
  if (int rc = check(ctx)) return rc;
  if (!mem || !address || length_bytes == 0 || flags != 0)
    return fail(ctx, EINVAL, "memory, its length or flags cannot be");
  *mem = nullptr;
  if (kind < NFSRDMA_MEM_HOST || kind > NFSRDMA_MEM_DMABUF_FD)
    return fail(ctx, EINVAL, "no such kind of memory");
  if (kind != NFSRDMA_MEM_HOST) return fail(ctx, EOPNOTSUPP, "only host memory can be registered yet");
  auto region = ctx->mount->register_memory(address, length_bytes);
  if (!region) return fail(ctx, region.error());
  *mem = new nfsrdma_mem{ctx, std::move(*region)};
  ++ctx->handles;
  return 0;
}

void nfsrdma_mem_unregister(nfsrdma_mem* mem) {
  if (!mem) return;
  nfsrdma_ctx* ctx = mem->ctx;
  delete mem;
  --ctx->handles;
}

}  // extern "C"
