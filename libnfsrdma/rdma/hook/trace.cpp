// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"
#include "rdma/hook/hooked.hpp"
#include "rdma/providers.hpp"

namespace nfsrdma::rdma {
namespace {

using hook::HookedQueuePair;

const char* name_of(Opcode op) {
  switch (op) {
    case Opcode::send:
      return "send";
    case Opcode::send_invalidate:
      return "send_invalidate";
    case Opcode::write:
      return "write";
    case Opcode::read:
      return "read";
    case Opcode::receive:
      return "receive";
    case Opcode::fence:
      return "fence";
  }
  return "?";
}

template <class... Args>
void line(const HookedQueuePair& pair, const char* format, Args... args) {
  if (!base::log_wants(base::LogLevel::trace)) return;
  std::string what = base::text(format, args...);
  base::log(base::LogLevel::trace, "rdma", "qp %llu %s", static_cast<unsigned long long>(pair.number()),
            what.c_str());
}

using Number = unsigned long long;

class TraceHook final : public hook::Hook {
 public:
  void on_send(HookedQueuePair& pair, const SendRequest& r) override {
    uint64_t bytes = 0;
    for (const Sge& piece : r.sge) bytes += piece.length;
    switch (r.op) {
      case Opcode::write:
      case Opcode::read:
        return line(pair, "post %s id %llx bytes %llu pieces %zu key %08x base %llx", name_of(r.op),
                    Number{r.id}, Number{bytes}, r.sge.size(), r.remote.key, Number{r.remote.base});
      case Opcode::send_invalidate:
        return line(pair, "post send_invalidate id %llx bytes %llu key %08x", Number{r.id}, Number{bytes},
                    r.invalidate_key);
      default:
        return line(pair, "post %s id %llx bytes %llu", name_of(r.op), Number{r.id}, Number{bytes});
    }
  }
  void on_receive(HookedQueuePair& pair, const ReceiveRequest& r) override {
    line(pair, "post receive id %llx bytes %u", Number{r.id}, r.sge.length);
  }
  void on_expose(HookedQueuePair& pair, const Exposure& e, Purpose purpose) override {
    line(pair, "expose key %08x base %llx bytes %u for %s", e.key, Number{e.base}, e.length,
         purpose == Purpose::read_source ? "reading" : "writing");
  }
  void on_fence(HookedQueuePair& pair, const Exposure& e) override { line(pair, "fence key %08x", e.key); }
  void on_event(HookedQueuePair& pair, const char* what, const std::string& text) override {
    line(pair, "%s%s%s", what, text.empty() ? "" : ": ", text.c_str());
  }
  TimeNs on_completion(HookedQueuePair& pair, const hook::Record& record, Completion& c, TimeNs) override {
    line(pair, "done %s id %llx %s bytes %u%s", name_of(record.op), Number{c.id}, to_string(c.status),
         c.length, c.invalidated ? base::text(" invalidated key %08x", c.invalidated_key).c_str() : "");
    return 0;
  }
};

}  // namespace

std::shared_ptr<Provider> make_trace_provider(std::shared_ptr<Provider> inner) {
  return hook::make_hooked_provider(std::move(inner), [] { return std::make_unique<TraceHook>(); });
}

}  // namespace nfsrdma::rdma
