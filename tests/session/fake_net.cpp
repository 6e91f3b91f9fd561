// SPDX-License-Identifier: Apache-2.0
#include "fake_net.hpp"

#include <algorithm>
#include <cerrno>

#include "nfs4/compound_server.hpp"
#include "nfs4/op_table.hpp"

namespace nfsrdma::session::test {

io::Task<Result<std::unique_ptr<rpc::Transport>>> FakeNet::connect(io::IoLoop& loop, rpc::TransportObserver& observer,
                                                                   rpc::ReverseHandler& reverse) {
  attempts++;
  if (connect_ns)
    co_await loop.sleep_for(connect_ns);
  else
    co_await loop.yield();
  if (refuse) co_return *refuse;
  co_return std::unique_ptr<rpc::Transport>(std::make_unique<FakeTransport>(*this, loop, observer, reverse));
}

FakeTransport* FakeNet::find(uint32_t connection) const {
  for (FakeTransport* t : live)
    if (t->connection == connection) return t;
  return nullptr;
}

FakeTransport::FakeTransport(FakeNet& net, io::IoLoop& loop, rpc::TransportObserver& observer,
                             rpc::ReverseHandler& reverse)
    : connection(++net.connections), net_(net), loop_(loop), observer_(observer), reverse_(reverse) {
  net_.live.push_back(this);
  end_timer_.set([this] {
    end();
    observer_.on_down(why_);
  });
}

FakeTransport::~FakeTransport() {
  end();
  std::erase(net_.live, this);
}

namespace {

void read_ops(Sent& sent) {
  nfs4::CompoundCallReader reader(sent.args);
  for (uint32_t op = 0; reader.next_op(op);) {
    sent.ops.push_back(static_cast<nfs4::Op>(op));
    nfs4::visit_op(static_cast<nfs4::Op>(op), [&]<class Args>() {
      Args args;
      if (reader.args(args)) {
        if constexpr (Args::op == nfs4::Op::sequence) sent.sequence = args;
      }
    });
  }
}

}  // namespace

void FakeTransport::submit(rpc::Call& call) {
  call.results = {};
  call.data_placed = false;
  call.data_length = 0;
  if (state_ == State::down) {
    call.outcome = rpc::CallOutcome::not_sent;
    call.error = why_;
    call.complete(call);
    return;
  }
  if (state_ == State::ending || stalled) {
    queued_.push_back(call);
    return;
  }
  auto sent = std::make_shared<Sent>();
  sent->transport = this;
  sent->call = &call;
  sent->connection = connection;
  sent->procedure = call.procedure;
  sent->urgent = call.urgent;
  sent->args.assign(call.args.begin(), call.args.end());
  sent->at_ns = loop_.now_ns();
  if (call.procedure == rpc::procedure_compound) read_ops(*sent);
  pending_.push_back(sent);
  stats_.sends++;
  loop_.post([this, sent] { net_.far().on_call(sent); });
}

void Sent::reply(rpc::ConstBytes results) {
  if (!call) return;
  std::erase_if(transport->pending_, [&](const SentRef& s) { return s.get() == this; });
  rpc::Call& c = *std::exchange(call, nullptr);
  c.outcome = rpc::CallOutcome::replied;
  c.results = results;
  c.complete(c);
}

void Sent::fail(rpc::CallOutcome outcome, const char* why) {
  if (!call) return;
  std::erase_if(transport->pending_, [&](const SentRef& s) { return s.get() == this; });
  rpc::Call& c = *std::exchange(call, nullptr);
  c.outcome = outcome;
  c.error = Error(EIO, ErrorOrigin::protocol, why);
  // As the transport does: a reply that broke the rules ends the connection.
  if (outcome == rpc::CallOutcome::bad_reply) transport->drop(c.error);
  c.complete(c);
}

void FakeTransport::drop(const Error& why) {
  if (state_ != State::up) return;
  state_ = State::ending;
  why_ = why;
  loop_.arm(end_timer_, 0);
}

// In the order of the real one: the connection is down, then calls complete, then the owner hears of it.
void FakeTransport::end() {
  bool was_down = state_ == State::down;
  state_ = State::down;
  if (!was_down) net_.far().on_gone(connection);
  std::vector<SentRef> lost;
  lost.swap(pending_);
  for (const SentRef& sent : lost) {
    sent->transport = nullptr;
    if (rpc::Call* c = std::exchange(sent->call, nullptr)) {
      c->outcome = rpc::CallOutcome::lost;
      c->error = why_;
      c->complete(*c);
    }
  }
  while (rpc::Call* c = queued_.pop_front()) {
    c->outcome = rpc::CallOutcome::not_sent;
    c->error = why_;
    c->complete(*c);
  }
}

std::vector<std::byte> FakeTransport::call_back(rpc::ConstBytes message) {
  std::vector<std::byte> reply(reverse_bytes_max());
  reply.resize(reverse_.on_reverse_call(message, reply));
  return reply;
}

}  // namespace nfsrdma::session::test
