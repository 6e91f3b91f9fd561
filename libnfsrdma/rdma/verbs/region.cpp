// SPDX-License-Identifier: Apache-2.0
#include "rdma/verbs/region.hpp"

#include <errno.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "base/log.hpp"

namespace nfsrdma::rdma::verbs {
namespace {

// A number of /proc/self/status; 0 when it is not there. Values in kB are returned in bytes.
uint64_t status_value(const char* name, int base, uint64_t unit) {
  FILE* file = fopen("/proc/self/status", "re");
  if (!file) return 0;
  char line[256];
  uint64_t value = 0;
  size_t length = strlen(name);
  while (fgets(line, sizeof line, file))
    if (strncmp(line, name, length) == 0) value = strtoull(line + length, nullptr, base) * unit;
  fclose(file);
  return value;
}

bool may_pin_without_limit() {
  return (status_value("CapEff:", 16, 1) >> CAP_IPC_LOCK) & 1;
}

// The kernel says "cannot allocate memory" both when memory is short and, far more often, when RLIMIT_MEMLOCK is.
Error registration_error(const DeviceTraits& device, const MemoryRange& range, int error) {
  rlimit limit{};
  // siw asks for the limit only, whatever the process may do.
  bool limited = getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
                 (device.siw || !may_pin_without_limit());
  uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t start = reinterpret_cast<uint64_t>(range.address) & ~(page - 1);
  uint64_t end = (reinterpret_cast<uint64_t>(range.address) + range.length_bytes + page - 1) & ~(page - 1);
  uint64_t pinned = status_value("VmPin:", 10, 1024) + status_value("VmLck:", 10, 1024);
  uint64_t needed = end - start + pinned;
  if ((error == ENOMEM || error == EPERM) && limited && needed > limit.rlim_cur)
    return Error(ENOMEM, ErrorOrigin::local,
                 base::text("cannot register %zu bytes on %s: needs %llu bytes of locked memory with what is "
                            "pinned already, the limit (RLIMIT_MEMLOCK) allows %llu; raise it (ulimit -l, "
                            "LimitMEMLOCK=, docker --ulimit memlock=-1)%s or use a smaller buffer pool",
                            range.length_bytes, device.name.c_str(), static_cast<unsigned long long>(needed),
                            static_cast<unsigned long long>(limit.rlim_cur),
                            device.siw ? "" : ", give the process an effective CAP_IPC_LOCK,"));
  if (range.kind == MemoryKind::dmabuf && error == EOPNOTSUPP)
    return Error(error, ErrorOrigin::local,
                 base::text("%s or its driver cannot register a dma-buf", device.name.c_str()));
  return Error(error, ErrorOrigin::local,
               base::text("cannot register %zu bytes on %s: %s", range.length_bytes, device.name.c_str(),
                          strerror(error)));
}

// Remote bits are given only where exposures have no windows. iWARP wants remote write also on the sink of its own
// RDMA Reads (RFC 5040 section 5.1), which is covered by that.
int access_of(const DeviceTraits& device) {
  if (device.windows) return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
  return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
}

ibv_mr* register_range(ibv_pd* pd, const MemoryRange& range, void* at, int access) {
  if (range.kind != MemoryKind::dmabuf) return ibv_reg_mr(pd, at, range.length_bytes, access);
  return ibv_reg_dmabuf_mr(pd, range.fd_offset, range.length_bytes, 0, range.fd, access);
}

Error range_error() { return Error(EFAULT, ErrorOrigin::local, "outside of registered memory"); }
Error revoked_error() { return Error(EIO, ErrorOrigin::local, "registered memory was revoked"); }

}  // namespace

Result<std::unique_ptr<Region>> VerbsRegion::create(std::shared_ptr<VerbsDomain> domain, const MemoryRange& range) {
  if (range.length_bytes == 0) return Error(EINVAL, ErrorOrigin::usage, "cannot register 0 bytes");
  MemoryRange placed = range;
  bool mapped = false;
  if (range.kind == MemoryKind::memfd && !range.address) {
    placed.address = mmap(nullptr, range.length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, range.fd,
                          static_cast<off_t>(range.fd_offset));
    if (placed.address == MAP_FAILED)
      return Error(errno, ErrorOrigin::local,
                   base::text("cannot map %zu bytes of a memfd: %s", range.length_bytes, strerror(errno)));
    mapped = true;
  }
  if (!placed.address && range.kind != MemoryKind::dmabuf)
    return Error(EINVAL, ErrorOrigin::usage, "cannot register memory at a null address");
  const DeviceTraits& device = domain->device().traits();
  ibv_mr* mr = register_range(domain->pd(), placed, placed.address, access_of(device));
  if (!mr) {
    Error error = registration_error(device, placed, errno);
    if (mapped) munmap(placed.address, range.length_bytes);
    return error;
  }
  bool reachable = range.kind == MemoryKind::host || range.kind == MemoryKind::memfd;
  uint64_t address = range.kind == MemoryKind::dmabuf ? 0 : reinterpret_cast<uint64_t>(placed.address);
  return std::unique_ptr<Region>(new VerbsRegion(std::move(domain), mr, address,
                                                 reachable ? static_cast<std::byte*>(placed.address) : nullptr,
                                                 placed, mapped));
}

VerbsRegion::VerbsRegion(std::shared_ptr<VerbsDomain> domain, ibv_mr* mr, uint64_t address, std::byte* host,
                         const MemoryRange& range, bool mapped)
    : Region(host, range.length_bytes, range.kind),
      domain_(std::move(domain)),
      mr_(mr),
      address_(address),
      lkey_(mr->lkey),
      rkey_(mr->rkey),
      mapped_(mapped) {}

VerbsRegion::~VerbsRegion() {
  deregister();
  if (mapped_) munmap(host(), length_bytes());
}

void VerbsRegion::deregister() {
  if (!mr_) return;
  if (int error = ibv_dereg_mr(mr_))
    base::log(base::LogLevel::error, "rdma", "%s: memory cannot be deregistered, it is still in use: %s",
              domain_->device().traits().name.c_str(), strerror(error));
  mr_ = nullptr;
}

Result<void> VerbsRegion::usable(uint64_t offset, size_t length) const {
  if (!contains(offset, length)) return range_error();
  if (revoked()) return revoked_error();
  return {};
}

Result<void> VerbsRegion::copy_in(uint64_t offset, ConstBytes from) {
  std::lock_guard lock(copying_);
  if (auto ok = usable(offset, from.size()); !ok) return ok;
  if (!host()) return Error(ENOTSUP, ErrorOrigin::local, "the CPU cannot reach this memory");
  if (!from.empty()) std::memcpy(host() + offset, from.data(), from.size());
  return {};
}

Result<void> VerbsRegion::copy_out(uint64_t offset, Bytes to) {
  std::lock_guard lock(copying_);
  if (auto ok = usable(offset, to.size()); !ok) return ok;
  if (!host()) return Error(ENOTSUP, ErrorOrigin::local, "the CPU cannot reach this memory");
  if (!to.empty()) std::memcpy(to.data(), host() + offset, to.size());
  return {};
}

Result<void> VerbsRegion::make_visible(uint64_t offset, size_t length) { return usable(offset, length); }

void VerbsRegion::revoke() {
  std::lock_guard revoking(revoking_);
  {
    std::lock_guard lock(copying_);
    if (revoked_.exchange(true)) return;
  }
  // Queue pairs that name the memory go into the error state and give their windows up; then nothing holds the
  // registration, and with it the device's last way to the memory goes.
  domain_->users().quiesce_all();
  deregister();
}

Result<std::unique_ptr<Region>> VerbsDomain::register_memory(const MemoryRange& range) {
  return VerbsRegion::create(self(), range);
}

}  // namespace nfsrdma::rdma::verbs
