// SPDX-License-Identifier: Apache-2.0
// An NFSv4.1 server of the mind: client ids, sessions with a strict slot check, a reply cache, and a file system of
// which only removals are counted. Rules make it misbehave, each a given number of times.
#pragma once

#include <deque>
#include <map>

#include "fake_net.hpp"
#include "nfs4/compound_server.hpp"
#include "nfs4/op_table.hpp"
#include "slots/reply_cache.hpp"

namespace nfsrdma::session::test {

enum class Act : uint8_t {
  serve,           // as usual; for twists
  lose_before,     // the connection ends, nothing was executed
  lose_after,      // executed, then the connection ends without an answer
  silence,         // not executed, not answered
  silence_after,   // executed, not answered
  hold,            // kept; release() serves it
  fail_sequence,   // SEQUENCE fails with status, nothing was executed
  fail_first,      // the first operation fails with status (operations that stand alone)
  fail_last,       // the last operation fails with status, the others were executed
  refuse,          // RPC level
  chunk_error,     // not executed
  chunk_error_after,
  bad_reply,       // executed, the transport found the reply broken
  garbage,         // executed, the results are noise
};

struct Rule {
  nfs4::Op op = nfs4::Op::illegal;  // applies to compounds that have it
  Act act = Act::serve;
  nfs4::Status status = nfs4::Status::ok;
  uint32_t times = 1;
  std::function<void(nfs4::SequenceResult&)> twist{};
  uint32_t skip = 0;  // so many matching calls pass first
};

class FakeServer final : public FarEnd {
 public:
  void on_call(const SentRef& sent) override;
  void on_gone(uint32_t connection) override { bound_.erase(connection); }

  void rule(Rule r) { rules_.push_back(std::move(r)); }
  void release();  // everything held is served now
  size_t held() const { return held_.size(); }

  // A restart: client ids, sessions and replies are forgotten, files are not.
  void restart();
  // The session alone is forgotten.
  void forget_session() { sessions_.clear(); }

  // What happened.
  std::vector<SentRef> log;                     // every call, in order
  std::map<std::string, uint32_t> removed;      // executions by name
  uint32_t false_retries = 0, misordered = 0;   // what a correct client never causes
  uint32_t reclaims_completed = 0;
  struct Bind {
    uint32_t connection;
    nfs4::ChannelDirection direction;
  };
  std::vector<Bind> binds;
  std::vector<nfs4::Verifier> verifiers;        // of each EXCHANGE_ID
  uint32_t sessions_made = 0, sessions_destroyed = 0, clients_destroyed = 0;
  size_t sessions() const { return sessions_.size(); }
  uint32_t highest_slot_used = 0;

  // How it is set up.
  uint32_t slots = 8;
  uint32_t status_flags = 0;
  bool back_channel = true;
  bool strict_binding = false;                  // a connection must be bound before SEQUENCE
  nfs4::SessionId session_id() const { return sessions_.empty() ? nfs4::SessionId{} : sessions_.begin()->first; }
  // Of the one session.
  slots::ReplyCache& cache() { return *sessions_.begin()->second; }
  size_t count(nfs4::Op op) const;
  std::vector<SentRef> calls_with(nfs4::Op op) const;

 private:
  struct Client {
    nfs4::Verifier verifier{};
    std::vector<std::byte> owner;
    bool confirmed = false;
    uint32_t sequence = 1;
  };
  Rule* matching(const Sent& sent);
  void execute(const SentRef& sent, Act act, nfs4::Status status,
               const std::function<void(nfs4::SequenceResult&)>& twist);
  std::vector<std::byte> results_of(const Sent& sent, Act act, nfs4::Status status,
                                    const std::function<void(nfs4::SequenceResult&)>& twist);
  template <class Args>
  bool answer(const Sent& sent, const Args& args, nfs4::CompoundReplyBuilder& out);
  nfs4::Status on_sequence(const Sent& sent, const nfs4::SequenceArgs& args, std::span<const std::byte>& replayed,
                           bool& uncached);

  std::deque<Rule> rules_;
  std::vector<SentRef> held_;
  std::map<nfs4::ClientId, Client> clients_;
  std::map<nfs4::SessionId, std::unique_ptr<slots::ReplyCache>> sessions_;
  std::set<uint32_t> bound_;
  nfs4::ClientId next_client_ = 0x1000;
  uint8_t next_session_ = 1;
};

}  // namespace nfsrdma::session::test
