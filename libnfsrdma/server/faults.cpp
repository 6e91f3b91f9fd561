// SPDX-License-Identifier: Apache-2.0
#include "server/faults.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace nfsrdma::server {
namespace {

constexpr const char* known_words =
    "delay=MS drop=N disconnect=N refuse=OP[:STATUS] credits=A[/B...] inline=BYTES no_private_data restart=N "
    "verifier=N callback=NAME";
// In the order of CallbackKind.
constexpr std::string_view callbacks[] = {"null", "recall", "recall_any", "recall_slot", "notify_lock", "getattr"};

bool number_of(std::string_view text, uint32_t& n) {
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), n);
  return failed == std::errc() && end == text.data() + text.size();
}

std::string_view cut(std::string_view& rest, char at) {
  size_t n = rest.find(at);
  std::string_view head = rest.substr(0, n);
  rest = n == rest.npos ? std::string_view() : rest.substr(n + 1);
  return head;
}

bool op_of(std::string_view text, uint32_t& op) {
  if (number_of(text, op)) return true;
  auto same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
  for (op = 3; op <= 75; ++op) {
    std::string_view name = nfs4::to_string(static_cast<nfs4::Op>(op));
    if (std::ranges::equal(name, text, same)) return true;
  }
  return false;
}

bool read_credits(std::string_view value, FaultPlan& plan) {
  while (!value.empty()) {
    uint32_t n = 0;
    if (!number_of(cut(value, '/'), n)) return false;
    plan.credits.push_back(n);
  }
  return !plan.credits.empty();
}

bool read_refusal(std::string_view value, FaultPlan& plan) {
  FaultPlan::Refusal refusal;
  uint32_t status = static_cast<uint32_t>(refusal.status);
  if (!op_of(cut(value, ':'), refusal.op) || (!value.empty() && !number_of(value, status))) return false;
  refusal.status = static_cast<nfs4::Status>(status);
  plan.refusals.push_back(refusal);
  return true;
}

bool read_word(std::string_view key, std::string_view value, FaultPlan& plan) {
  struct Number {
    std::string_view key;
    uint32_t FaultPlan::*field;
  };
  constexpr Number numbers[] = {{"delay", &FaultPlan::delay_ms},           {"drop", &FaultPlan::drop_every},
                                {"disconnect", &FaultPlan::disconnect_every}, {"restart", &FaultPlan::restart_every},
                                {"verifier", &FaultPlan::verifier_every},  {"inline", &FaultPlan::inline_bytes}};
  for (const Number& n : numbers) {
    if (key == n.key) return number_of(value, plan.*n.field);
  }
  if (key == "credits") return read_credits(value, plan);
  if (key == "refuse") return read_refusal(value, plan);
  if (key == "no_private_data") {
    plan.private_data = false;
    return value.empty();
  }
  if (key != "callback" || std::ranges::find(callbacks, value) == std::end(callbacks)) return false;
  plan.callback = std::string(value);
  return true;
}

}  // namespace

Result<FaultPlan> parse_faults(std::string_view text) {
  FaultPlan plan;
  while (!text.empty()) {
    std::string_view word = cut(text, ',');
    std::string_view rest = word;
    std::string_view key = cut(rest, '=');
    if (!read_word(key, rest, plan)) {
      return Error(EINVAL, ErrorOrigin::usage,
                   "fault '" + std::string(word) + "' is not understood; known are: " + known_words);
    }
    plan.any = true;
  }
  return plan;
}

nfs4::Status ServerFaults::on_op(uint32_t op) const {
  for (const FaultPlan::Refusal& r : plan_.refusals) {
    if (r.op == op) return r.status;
  }
  return nfs4::Status::ok;
}

CallbackKind ServerFaults::callback_kind() const {
  auto at = std::ranges::find(callbacks, plan_.callback) - std::begin(callbacks);
  return static_cast<CallbackKind>(at);
}

bool ServerFaults::drops_reply() { return due(plan_.drop_every, drop_count_); }

rpcrdma::ConnectFault ServerFaults::on_connect() {
  rpcrdma::ConnectFault fault;
  fault.private_data = plan_.private_data;
  fault.inline_bytes = plan_.inline_bytes;
  return fault;
}

rpcrdma::ReplyFault ServerFaults::on_reply(const rpc::ServerConnection&, const rpc::CallHeader& call) {
  rpcrdma::ReplyFault fault;
  fault.delay_ns = base::ms(plan_.delay_ms);
  if (!plan_.credits.empty()) {
    size_t n = credit_count_.fetch_add(1, std::memory_order_relaxed);
    fault.credits = plan_.credits[std::min(n, plan_.credits.size() - 1)];
  }
  if (call.procedure == rpc::procedure_compound && due(plan_.disconnect_every, disconnect_count_)) {
    fault.kind = rpcrdma::ReplyFaultKind::drop_connection;
  }
  return fault;
}

}  // namespace nfsrdma::server
