// SPDX-License-Identifier: Apache-2.0
// Seeded faults. Each completion queue has its own sequence of random numbers, derived from the seed and the
// order of creation: a simulation that turns its loops in a seeded order sees the same faults each time.
#include "base/log.hpp"
#include "base/random.hpp"
#include "rdma/hook/hooked.hpp"
#include "rdma/providers.hpp"

namespace nfsrdma::rdma {
namespace {

using hook::HookedQueuePair;

class FaultHook final : public hook::Hook {
 public:
  FaultHook(const FaultPlan& plan, uint64_t seed) : plan_(plan), random_(seed) {}

  void on_send(HookedQueuePair& pair, const SendRequest&) override {
    if (!happens(plan_.drop_connection)) return;
    say(pair, "connection dropped at a post");
    pair.disconnect();
  }

  TimeNs on_completion(HookedQueuePair& pair, const hook::Record& record, Completion& c,
                       TimeNs now_ns) override {
    if (c.status == CompletionStatus::success && record.op != Opcode::fence) spoil(pair, record, c);
    if (happens(plan_.drop_connection)) {
      say(pair, "connection dropped at a completion");
      pair.disconnect();
    }
    return happens(plan_.delay_completion) ? now_ns + random_.below(plan_.delay_max_ns) + 1 : 0;
  }

 private:
  bool happens(uint32_t per_million) { return per_million > 0 && random_.below(1'000'000) < per_million; }

  void spoil(HookedQueuePair& pair, const hook::Record& record, Completion& c) {
    if (happens(plan_.fail_completion)) {
      say(pair, "completion failed");
      c.status = CompletionStatus::transport_error;
      pair.disconnect();
      return;
    }
    if (record.op != Opcode::receive || c.length == 0) return;
    if (happens(plan_.truncate_receive)) {
      say(pair, "received message truncated");
      c.length = static_cast<uint32_t>(random_.below(c.length));
    }
    if (happens(plan_.corrupt_receive) && c.length > 0) {
      say(pair, "received message corrupted");
      std::byte one[1];
      uint64_t at = record.sge.offset + random_.below(c.length);
      if (!record.sge.region->copy_out(at, one)) return;
      one[0] ^= static_cast<std::byte>(1 + random_.below(255));
      (void)record.sge.region->copy_in(at, one);
    }
  }

  static void say(HookedQueuePair& pair, const char* what) {
    base::log(base::LogLevel::debug, "rdma", "fault on qp %llu: %s",
              static_cast<unsigned long long>(pair.number()), what);
  }

  FaultPlan plan_;
  base::SeededRandom random_;
};

}  // namespace

std::shared_ptr<Provider> make_fault_provider(std::shared_ptr<Provider> inner, const FaultPlan& plan) {
  return hook::make_hooked_provider(std::move(inner), [plan, made = uint64_t{0}]() mutable {
    base::SeededRandom seeds(plan.seed + 0x1000003 * made++);
    return std::make_unique<FaultHook>(plan, seeds.next());
  });
}

}  // namespace nfsrdma::rdma
