// SPDX-License-Identifier: Apache-2.0
// Class Mount: life cycle, memory, and how operations reach a loop.
#include "nfsrdma/mount.hpp"

#include <cerrno>
#include <new>

#include "base/log.hpp"
#include "client/mount_impl.hpp"

namespace nfsrdma {
namespace client {
namespace {

// Blocks of one size for what travels between threads; larger ones come from the heap.
constexpr size_t box_bytes = 384;
constexpr size_t boxes_kept_max = 256;

struct Boxes {
  std::mutex mutex;
  std::vector<void*> kept;  // reserved once: push_back never allocates
  Boxes() { kept.reserve(boxes_kept_max); }
  ~Boxes() {
    for (void* block : kept) ::operator delete(block);
  }
};

Boxes& boxes() {
  static Boxes instance;
  return instance;
}

}  // namespace

void* box_allocate(size_t bytes) {
  if (bytes > box_bytes) return ::operator new(bytes);
  Boxes& b = boxes();
  std::lock_guard lock(b.mutex);
  if (b.kept.empty()) return ::operator new(box_bytes);
  void* block = b.kept.back();
  b.kept.pop_back();
  return block;
}

void box_free(void* block, size_t bytes) noexcept {
  Boxes& b = boxes();
  if (bytes <= box_bytes) {
    std::lock_guard lock(b.mutex);
    if (b.kept.size() < boxes_kept_max) {
      b.kept.push_back(block);
      return;
    }
  }
  ::operator delete(block);
}

}  // namespace client

Mount::Mount(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Mount::~Mount() {
  auto ended = impl_->shut_down();
  if (!ended) base::log(base::LogLevel::error, "client", "unmount: %s", ended.error().text().c_str());
}

Result<std::unique_ptr<Mount>> Mount::connect(const Options& options) {
  auto impl = std::make_unique<Impl>(options);
  auto connected = impl->connect(nullptr);
  if (!connected) return connected.error();
  return std::make_unique<Mount>(std::move(impl));
}

std::vector<ProbeStep> Mount::probe(const Options& options) {
  std::vector<ProbeStep> steps;
  Options one = options;
  one.nconnect = 1;
  Impl impl(one);
  auto connected = impl.connect([&](const char* name, bool ok, uint64_t time_us, const std::string& detail) {
    steps.push_back({name, ok, time_us, detail});
  });
  if (!connected && (steps.empty() || steps.back().ok))
    steps.push_back({"start", false, 0, connected.error().text()});
  if (connected) (void)impl.shut_down();
  return steps;
}

Result<void> Mount::shut_down() { return impl_->shut_down(); }
Node Mount::root() const { return impl_->root(); }
MountInfo Mount::info() const { return impl_->info(); }
Stats Mount::stats() const { return impl_->stats(); }
void Mount::stats(Done<Stats> done) const {
  impl_->start<Stats>([i = impl_.get()] { return i->collect_stats(); }, std::move(done));
}
std::span<Loop* const> Mount::loops() const { return impl_->loops(); }
const Credentials& Mount::default_credentials() const { return impl_->default_credentials(); }

Result<Region> Mount::register_memory(void* address, size_t length_bytes) {
  if (!address || length_bytes == 0) return Error(EINVAL, ErrorOrigin::usage, "register_memory: no memory given");
  rdma::MemoryRange range;
  range.address = address;
  range.length_bytes = length_bytes;
  auto region = impl_->fabric().protection_domain().register_memory(range);
  if (!region) return region.error();
  auto state = std::make_unique<client::RegionState>();
  state->region = std::move(*region);
  return Region(std::move(state));
}

Buffer Mount::borrow(size_t bytes) {
  if (bytes > impl_->pool().largest_bytes()) return {};
  return client::BufferState::wrap(impl_->pool().try_borrow(static_cast<uint32_t>(bytes)));
}

bool Mount::Impl::on_own_loop() const {
  io::IoLoop* here = io::IoLoop::current();
  if (!here) return false;
  for (auto& thread : threads_)
    if (&thread->loop() == here) return true;
  return false;
}

io::IoLoop& Mount::Impl::some_loop() {
  return threads_[next_loop_.fetch_add(1, std::memory_order_relaxed) % threads_.size()]->loop();
}

}  // namespace nfsrdma
