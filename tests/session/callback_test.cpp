// SPDX-License-Identifier: Apache-2.0
// Callbacks as a server sends them: CB_NULL, the rules of CB_SEQUENCE (RFC 8881 section 20.9), repetitions, recalls,
// and bytes that are no call at all.
#include "nfs4/compound_server.hpp"
#include "world.hpp"

namespace nfsrdma::session::test {
namespace {

using nfs4::CbOp;
using nfs4::Status;

constexpr nfs4::SessionId session{std::byte{7}};

struct Answer {
  std::vector<std::byte> bytes;  // the whole RPC reply
  bool answered = false;
  bool accepted = false;         // results follow
  Status status = Status::ok;    // of the CB_COMPOUND
  uint32_t results = 0;
  Status last = Status::ok;
  CbOp last_op = CbOp::illegal;
};

class Callbacks : public ::testing::Test {
 protected:
  Callbacks() { service.reset(session); }

  // A CB_COMPOUND of CB_SEQUENCE and what `add` adds.
  template <class Add>
  std::vector<std::byte> message(const nfs4::CbSequenceArgs& sequence, Add add, uint32_t xid = 1,
                                 uint32_t minor_version = 1) {
    std::vector<std::byte> out(4096);
    uint32_t at = rpc::encode_call_header(out, xid, rpc::callback_program, rpc::callback_version,
                                          nfs4::procedure_cb_compound, rpc::Credential::none());
    auto builder = nfs4::CompoundBuilder::callback(std::span(out).subspan(at), minor_version);
    builder.add(sequence);
    add(builder);
    out.resize(at + builder.finish().size());
    return out;
  }
  Answer send(std::span<const std::byte> call, size_t room = 4068) {
    Answer a;
    a.bytes.resize(room);
    a.bytes.resize(service.on_reverse_call(call, a.bytes));
    a.answered = !a.bytes.empty();
    uint32_t at = 0;
    if (!a.answered || !rpc::decode_reply_header(a.bytes, base::load_be<uint32_t>(call.data()), at)) return a;
    a.accepted = true;
    std::span<const std::byte> body = std::span<const std::byte>(a.bytes).subspan(at);
    if (body.empty()) return a;
    xdr::Decoder in(body);
    std::string_view tag;
    in(a.status, xdr::bounded(tag, 1024), a.results);
    // Results without a body, behind CB_SEQUENCE's: number and status each.
    uint32_t op = 0;
    for (uint32_t i = 0; i < a.results && in.ok(); i++) {
      in(op, a.last);
      nfs4::CbSequenceResult sequence;
      if (static_cast<CbOp>(op) == CbOp::sequence && a.last == Status::ok) in(sequence);
    }
    a.last_op = static_cast<CbOp>(op);
    EXPECT_TRUE(in.ok() && in.at_end());
    return a;
  }
  Answer sequence_only(uint32_t sequence_id, uint32_t slot = 0, uint32_t xid = 1) {
    return send(message({session, sequence_id, slot, slot, false, {}}, [](auto&) {}, xid));
  }
  static void recall(nfs4::CompoundBuilder& b) { b.add(nfs4::CbRecallArgs{}); }

  CallbackService service;
};

TEST_F(Callbacks, NullIsAnsweredAndOtherProgramsAreNot) {
  std::vector<std::byte> call(128);
  auto none = rpc::Credential::none();
  call.resize(rpc::encode_call_header(call, 9, rpc::callback_program, 1, nfs4::procedure_cb_null, none));
  Answer a = send(call);
  EXPECT_TRUE(a.accepted);
  EXPECT_EQ(a.bytes.size(), rpc::reply_header_bytes);
  for (auto [program, version, procedure] : {std::tuple{100003u, 1u, 1u}, {rpc::callback_program, 4u, 1u},
                                             {rpc::callback_program, 1u, 2u}}) {
    std::vector<std::byte> other(128);
    other.resize(rpc::encode_call_header(other, 9, program, version, procedure, none));
    a = send(other);
    EXPECT_TRUE(a.answered);
    EXPECT_FALSE(a.accepted);
  }
  EXPECT_EQ(service.calls(), 4u);
}

TEST_F(Callbacks, SequenceIdsRunPerSlotFromOne) {
  EXPECT_EQ(sequence_only(2).status, Status::seq_misordered);
  EXPECT_EQ(sequence_only(0).status, Status::seq_misordered);
  EXPECT_EQ(sequence_only(1).status, Status::ok);
  EXPECT_EQ(sequence_only(2).status, Status::ok);
  EXPECT_EQ(sequence_only(4).status, Status::seq_misordered);
  EXPECT_EQ(sequence_only(1, callback_slots - 1).status, Status::ok);
  EXPECT_EQ(sequence_only(1, callback_slots).status, Status::badslot);
  EXPECT_EQ(sequence_only(3).status, Status::ok);
}

TEST_F(Callbacks, OtherSessionsAndCachingAreRefused) {
  EXPECT_EQ(send(message({{std::byte{8}}, 1, 0, 0, false, {}}, [](auto&) {})).status, Status::badsession);
  EXPECT_EQ(send(message({session, 1, 0, 0, true, {}}, [](auto&) {})).status, Status::rep_too_big_to_cache);
  EXPECT_EQ(sequence_only(1).status, Status::ok) << "neither used the sequence id up";
  service.reset({std::byte{8}});
  EXPECT_EQ(sequence_only(2).status, Status::badsession);
}

TEST_F(Callbacks, RecallAsksWhoHoldsTheDelegation) {
  int asked = 0;
  Status held = Status::ok;
  service.on_recall = [&](const nfs4::CbRecallArgs&) { return asked++, held; };
  EXPECT_EQ(send(message({session, 1, 0, 0, false, {}}, recall)).status, Status::ok);
  held = Status::delay;
  Answer a = send(message({session, 2, 0, 0, false, {}}, recall));
  EXPECT_EQ(a.status, Status::delay);
  EXPECT_EQ(a.results, 2u);
  EXPECT_EQ(asked, 2);
}

TEST_F(Callbacks, RepetitionIsAnsweredAlikeAndNotExecutedAgain) {
  int asked = 0;
  service.on_recall = [&](const nfs4::CbRecallArgs&) { return ++asked == 1 ? Status::bad_stateid : Status::ok; };
  auto call = message({session, 1, 0, 0, false, {}}, recall);
  Answer first = send(call), again = send(call);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(first.status, Status::bad_stateid);
  EXPECT_EQ(first.bytes, again.bytes);
  // The same call under another xid, as after a reconnection.
  auto resent = message({session, 1, 0, 0, false, {}}, recall, 2);
  again = send(resent);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(again.status, Status::bad_stateid);
}

// Linux does this after a callback that was never answered: a new call, and it has to be executed.
TEST_F(Callbacks, SameSequenceIdWithOtherContentIsANewCall) {
  int asked = 0;
  service.on_recall = [&](const nfs4::CbRecallArgs&) { return asked++, Status::ok; };
  send(message({session, 1, 0, 0, false, {}}, recall));
  auto other = message({session, 1, 0, 0, false, {}}, [](auto& b) { b.add(nfs4::CbRecallArgs{{}, true, {}}); });
  EXPECT_EQ(send(other).status, Status::ok);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(send(other).status, Status::ok);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(sequence_only(2).status, Status::ok);
}

TEST_F(Callbacks, OtherOperations) {
  uint32_t target = 0;
  service.on_recall_slot = [&](uint32_t t) { target = t; };
  auto one = [&](uint32_t id, auto args) {
    return send(message({session, id, 0, 0, false, {}}, [&](auto& b) { b.add(args); }));
  };
  EXPECT_EQ(one(1, nfs4::CbRecallSlotArgs{5}).status, Status::ok);
  EXPECT_EQ(target, 5u);
  EXPECT_EQ(one(2, nfs4::CbRecallAnyArgs{}).status, Status::ok);
  EXPECT_EQ(one(3, nfs4::CbNotifyLockArgs{}).status, Status::ok);
  EXPECT_EQ(one(4, nfs4::CbGetattrArgs{}).status, Status::badhandle);
  EXPECT_EQ(one(5, nfs4::CbSequenceArgs{}).status, Status::sequence_pos);
  EXPECT_EQ(one(6, nfs4::CbRecallArgs{}).status, Status::bad_stateid) << "nobody holds anything";
}

// Number and nothing else: CB_LAYOUTRECALL is known and not supported, 77 is no callback.
TEST_F(Callbacks, UnknownOperations) {
  uint32_t id = 0;
  for (auto [op, status, answered_as] : {std::tuple{5u, Status::notsupp, 5u}, {15u, Status::notsupp, 15u},
                                         {77u, Status::op_illegal, 10044u}, {2u, Status::op_illegal, 10044u}}) {
    auto call = message({session, ++id, 0, 0, false, {}}, [](auto& b) { b.add(nfs4::CbRecallSlotArgs{0}); });
    // The operation's number stands 8 bytes before the end; its argument goes.
    call.resize(call.size() - 4);
    base::store_be(call.data() + call.size() - 4, op);
    Answer a = send(call);
    EXPECT_EQ(a.status, status) << op;
    EXPECT_EQ(static_cast<uint32_t>(a.last_op), answered_as);
  }
}

TEST_F(Callbacks, SequenceComesFirst) {
  std::vector<std::byte> call(512);
  uint32_t at = rpc::encode_call_header(call, 1, rpc::callback_program, 1, 1, rpc::Credential::none());
  auto builder = nfs4::CompoundBuilder::callback(std::span(call).subspan(at), 1);
  builder.add(nfs4::CbRecallArgs{});
  call.resize(at + builder.finish().size());
  Answer a = send(call);
  EXPECT_EQ(a.status, Status::op_not_in_session);
  EXPECT_EQ(a.last_op, CbOp::recall);
}

TEST_F(Callbacks, OtherMinorVersionsAndTooManyOperationsAreRefused) {
  Answer a = send(message({session, 1, 0, 0, false, {}}, [](auto&) {}, 1, 7));
  EXPECT_EQ(a.status, Status::minor_vers_mismatch);
  EXPECT_EQ(a.results, 0u);
  EXPECT_EQ(sequence_only(1).status, Status::ok);
  int asked = 0;
  service.on_recall = [&](const nfs4::CbRecallArgs&) { return asked++, Status::ok; };
  auto many = [&](uint32_t n) {
    return message({session, 2, 0, 0, false, {}}, [&](auto& b) {
      for (uint32_t i = 1; i < n; i++) recall(b);
    });
  };
  EXPECT_EQ(send(many(callback_operations_max + 1)).status, Status::too_many_ops);
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(send(many(callback_operations_max)).status, Status::ok);
  EXPECT_EQ(asked, static_cast<int>(callback_operations_max) - 1);
}

// Cut anywhere, changed anywhere, or noise: an answer that is well formed, or none.
TEST_F(Callbacks, GarbageIsAnsweredWellFormedOrNotAtAll) {
  auto good = message({session, 1, 0, 0, false, {}}, recall);
  for (size_t n = 0; n < good.size(); n++) {
    Answer a = send(std::span(good).first(n));
    EXPECT_FALSE(a.accepted && a.status == Status::ok && a.results == 2) << n;
  }
  base::SeededRandom random(5);
  for (int i = 0; i < 20'000; i++) {
    auto call = good;
    for (uint64_t flips = 1 + random.below(4); flips; flips--)
      call[random.below(call.size())] = static_cast<std::byte>(random.next());
    std::vector<std::byte> reply(random.below(2) ? 4068 : random.below(4069));
    uint32_t n = service.on_reverse_call(call, reply);
    ASSERT_LE(n, reply.size());
    ASSERT_EQ(n % 4, 0u);
  }
  for (int i = 0; i < 2'000; i++) {
    std::vector<std::byte> noise(random.below(300));
    random.fill(noise);
    std::vector<std::byte> reply(4068);
    ASSERT_LE(service.on_reverse_call(noise, reply), reply.size());
  }
}

TEST_F(Callbacks, LittleRoomForTheAnswer) {
  auto call = message({session, 1, 0, 0, false, {}}, recall);
  for (size_t room = 0; room < 200; room += 4) {
    service.reset(session);
    std::vector<std::byte> reply(room);
    EXPECT_LE(service.on_reverse_call(call, reply), room);
  }
}

// Through a connection of a running session, and CB_RECALL_SLOT is answered by a request that uses fewer slots.
TEST(SessionCallbacks, RecallSlotIsObeyedAndConfirmed) {
  World w;
  ASSERT_TRUE(w.start());
  w.server->set_lease(90);
  w.settle();
  std::vector<std::byte> call(512);
  uint32_t at = rpc::encode_call_header(call, 1, rpc::callback_program, 1, 1, rpc::Credential::none());
  auto builder = nfs4::CompoundBuilder::callback(std::span(call).subspan(at), 1);
  builder.add(nfs4::CbSequenceArgs{w.far.session_id(), 1, 0, 0, false, {}});
  builder.add(nfs4::CbRecallSlotArgs{1});
  call.resize(at + builder.finish().size());
  w.far.cache().set_target(2);
  size_t before = w.far.log.size();
  bool answered = false;
  w.loops[0]->post([&] { answered = !w.net.live[0]->call_back(call).empty(); });
  w.pass(base::seconds(3));
  EXPECT_TRUE(answered);
  EXPECT_EQ(w.server->callbacks(), 1u);
  EXPECT_EQ(w.server->info().slots, 2u);
  ASSERT_EQ(w.far.log.size(), before + 1) << "a lone SEQUENCE tells the server";
  EXPECT_EQ(w.far.log.back()->sequence->highest_slotid, 0u);
}

}  // namespace
}  // namespace nfsrdma::session::test
