// SPDX-License-Identifier: Apache-2.0
// Compounds from both ends: what one builds the other reads; everything a broken or hostile peer may send is
// named.
#include <gtest/gtest.h>

#include "nfs4/compound.hpp"
#include "nfs4/compound_server.hpp"
#include "tests/nfs4/all_types.hpp"

namespace nfsrdma::nfs4::test {
namespace {

const Buffer some_bytes(64, std::byte{0x42});

class Compound : public testing::Test {
 protected:
  // SEQUENCE, PUTFH, READ as the client sends it.
  CompoundBuilder read_call(xdr::Form reply = xdr::Form::whole) {
    CompoundBuilder builder(call_, 1, xdr::Form::whole, reply);
    builder.add(SequenceArgs{});
    builder.add(PutfhArgs{.fh = FileHandle(some_bytes)});
    builder.add(ReadArgs{.count = 5});
    return builder;
  }
  // Its reply, with the chance to spoil it before it is finished.
  ByteView read_reply(Status last = Status::ok) {
    CompoundReplyBuilder builder(reply_);
    builder.append(SequenceResult{});
    builder.append(PutfhResult{});
    if (last == Status::ok) {
      builder.append(ReadResult{true, xdr::DdpItem::of(ByteView(some_bytes).first(5))});
    } else {
      builder.append_failure<ReadResult>(last);
    }
    return builder.finish();
  }
  // Reads it as SEQUENCE, PUTFH, READ; true when all succeeded.
  static bool read_all(CompoundReader& reader, ReadResult& read) {
    SequenceResult sequence;
    return reader.next(sequence) && reader.next<PutfhResult>() && reader.next(read) && reader.finish();
  }
  void poke(ByteView bytes, size_t at, uint32_t value) {
    xdr::store_u32(reply_.data() + (bytes.data() - reply_.data()) + at, value);
  }

  Buffer call_ = Buffer(4096);
  Buffer reply_ = Buffer(4096);
};

TEST_F(Compound, CallBytes) {
  CompoundBuilder builder(call_, 1);
  EXPECT_EQ(builder.add(PutrootfhArgs{}), 0u);
  EXPECT_EQ(builder.add(GetfhArgs{}), 1u);
  const ByteView bytes = builder.finish();
  EXPECT_EQ(Buffer(bytes.begin(), bytes.end()), encode(std::array<uint32_t, 5>{0, 1, 2, 24, 10}));
}

TEST_F(Compound, SuccessIsReadInOrder) {
  CompoundBuilder builder = read_call();
  ASSERT_FALSE(builder.finish().empty());
  CompoundReader reader(read_reply(), builder.op_count());
  ReadResult read;
  EXPECT_TRUE(read_all(reader, read));
  EXPECT_TRUE(read.eof);
  EXPECT_EQ(read.data.inline_bytes.size(), 5u);
  EXPECT_EQ(reader.status(), Status::ok);
  EXPECT_FALSE(reader.malformed());
}

TEST_F(Compound, FailureEndsTheResults) {
  CompoundReplyBuilder builder(reply_);
  builder.append(SequenceResult{});
  builder.append_failure<PutfhResult>(Status::stale);
  CompoundReader reader(builder.finish(), 3);
  ReadResult read;
  EXPECT_FALSE(read_all(reader, read));
  EXPECT_FALSE(reader.malformed());
  EXPECT_EQ(reader.status(), Status::stale);
  EXPECT_EQ(reader.op_status(), Status::stale);
  EXPECT_EQ(reader.index(), 1u);
  EXPECT_FALSE(reader.next(read)) << "nothing follows";
  EXPECT_FALSE(reader.finish());
  EXPECT_FALSE(reader.malformed());
}

TEST_F(Compound, CompoundThatFailsBeforeItsFirstOperation) {
  CompoundReplyBuilder builder(reply_);
  CompoundReader reader(builder.finish(Status::minor_vers_mismatch), 3);
  ReadResult read;
  EXPECT_FALSE(read_all(reader, read));
  EXPECT_FALSE(reader.malformed());
  EXPECT_EQ(reader.op_status(), Status::minor_vers_mismatch);
  EXPECT_EQ(reader.index(), 0u);
}

TEST_F(Compound, UnknownOperationIsIllegal) {
  CompoundReplyBuilder builder(reply_);
  builder.append(SequenceResult{});
  builder.append_status(Op::illegal, Status::op_illegal);
  CompoundReader reader(builder.finish(), 3);
  SequenceResult sequence;
  EXPECT_TRUE(reader.next(sequence));
  EXPECT_FALSE(reader.next<SetattrResult>()) << "whatever body a failure would carry, ILLEGAL has none";
  EXPECT_FALSE(reader.malformed());
  EXPECT_TRUE(reader.illegal());
  EXPECT_EQ(reader.op_status(), Status::op_illegal);
}

TEST_F(Compound, FailuresWithBodies) {
  {
    CompoundReplyBuilder builder(reply_);
    builder.append_failure(Status::inval, SetattrResult{Bitmap{attr::size}});
    CompoundReader reader(builder.finish(), 1);
    SetattrResult setattr;
    EXPECT_FALSE(reader.next(setattr));
    EXPECT_FALSE(reader.malformed());
    EXPECT_TRUE(setattr.attributes_set.test(attr::size));
  }
  {
    LockResult denied;
    denied.denied = {5, 6, LockType::write, {7, ByteView(some_bytes).first(3)}};
    CompoundReplyBuilder builder(reply_);
    builder.append_failure(Status::denied, denied);
    CompoundReader reader(builder.finish(), 1);
    LockResult lock;
    EXPECT_FALSE(reader.next(lock));
    EXPECT_FALSE(reader.malformed());
    EXPECT_EQ(lock.denied.length, 6u);
    EXPECT_EQ(lock.denied.owner.owner.size(), 3u);
  }
  {
    CompoundReplyBuilder builder(reply_);
    builder.append_failure<LockResult>(Status::grace);
    CompoundReader reader(builder.finish(), 1);
    EXPECT_FALSE(reader.next<LockResult>());
    EXPECT_FALSE(reader.malformed());
    EXPECT_EQ(reader.op_status(), Status::grace);
  }
}

TEST_F(Compound, MoreResultsThanOperations) {
  CompoundReader reader(read_reply(), 2);
  EXPECT_TRUE(reader.malformed());
  EXPECT_STREQ(reader.complaint(), "more results than operations");
  EXPECT_FALSE(reader.next<SequenceResult>());
}

TEST_F(Compound, SuccessWithResultsMissing) {
  CompoundReader reader(read_reply(), 4);
  EXPECT_TRUE(reader.malformed());
  EXPECT_STREQ(reader.complaint(), "success with results missing");
}

TEST_F(Compound, ResultOfAnotherOperation) {
  const ByteView bytes = read_reply();
  poke(bytes, 12, static_cast<uint32_t>(Op::putfh));
  CompoundReader reader(bytes, 3);
  EXPECT_FALSE(reader.next<SequenceResult>());
  EXPECT_TRUE(reader.malformed());
  EXPECT_STREQ(reader.complaint(), "result of another operation");
}

TEST_F(Compound, ResultsBehindAFailure) {
  const ByteView bytes = read_reply();
  poke(bytes, 0, static_cast<uint32_t>(Status::stale));
  poke(bytes, 12 + 44 + 4, static_cast<uint32_t>(Status::stale));  // PUTFH's status
  CompoundReader reader(bytes, 3);
  ReadResult read;
  EXPECT_FALSE(read_all(reader, read));
  EXPECT_STREQ(reader.complaint(), "results behind a failure");
}

TEST_F(Compound, StatusThatContradictsTheLastResult) {
  ByteView bytes = read_reply(Status::io);
  poke(bytes, 0, static_cast<uint32_t>(Status::stale));
  CompoundReader reader(bytes, 3);
  ReadResult read;
  EXPECT_FALSE(read_all(reader, read));
  EXPECT_TRUE(reader.malformed());

  bytes = read_reply();
  poke(bytes, 0, static_cast<uint32_t>(Status::stale));
  CompoundReader second(bytes, 3);
  EXPECT_FALSE(read_all(second, read));
  EXPECT_TRUE(second.malformed());
}

TEST_F(Compound, BytesLeftOver) {
  for (Status last : {Status::ok, Status::io}) {
    const ByteView bytes = read_reply(last);
    CompoundReader reader(ByteView(bytes.data(), bytes.size() + 4), 3);
    ReadResult read;
    EXPECT_FALSE(read_all(reader, read));
    EXPECT_TRUE(reader.malformed());
    EXPECT_STREQ(reader.complaint(), "bytes left over");
  }
}

TEST_F(Compound, ResultsLeftUnread) {
  CompoundReader reader(read_reply(), 3);
  EXPECT_TRUE(reader.next<SequenceResult>());
  EXPECT_FALSE(reader.finish());
  EXPECT_STREQ(reader.complaint(), "results left unread");
}

TEST_F(Compound, EveryTruncationOfAReplyIsMalformed) {
  for (Status last : {Status::ok, Status::io}) {
    const ByteView bytes = read_reply(last);
    for (size_t n = 0; n < bytes.size(); ++n) {
      const Buffer cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
      CompoundReader reader(cut, 3);
      ReadResult read;
      EXPECT_FALSE(read_all(reader, read));
      EXPECT_TRUE(reader.malformed()) << n;
      EXPECT_NE(reader.complaint(), nullptr);
    }
  }
}

TEST_F(Compound, ReducedRead) {
  CompoundReplyBuilder builder(reply_, {}, xdr::Form::reduced);
  builder.append(SequenceResult{});
  builder.append(PutfhResult{});
  builder.append(ReadResult{false, xdr::DdpItem::elsewhere(4097)});
  const ByteView bytes = builder.finish();
  ASSERT_TRUE(builder.ddp());
  EXPECT_EQ(builder.ddp()->position, 12u + 44 + 8 + 8 + 4 + 4);
  EXPECT_EQ(builder.whole_size(), bytes.size() + 4100);

  CompoundReader reader(bytes, 3, xdr::OutOfBand{4097});
  ReadResult read;
  EXPECT_TRUE(read_all(reader, read));
  EXPECT_EQ(read.data.length, 4097u);
  ASSERT_TRUE(reader.ddp());
  EXPECT_EQ(reader.ddp()->position, builder.ddp()->position);

  CompoundReader wrong(bytes, 3, xdr::OutOfBand{4096});
  EXPECT_FALSE(read_all(wrong, read));
  EXPECT_TRUE(wrong.malformed());
}

TEST_F(Compound, ReducedWrite) {
  CompoundBuilder builder(call_, 1, xdr::Form::reduced);
  builder.add(SequenceArgs{});
  builder.add(PutfhArgs{.fh = FileHandle(ByteView(some_bytes).first(8))});
  builder.add(WriteArgs{.offset = 9, .data = xdr::DdpItem::elsewhere(1001)});
  const ByteView bytes = builder.finish();
  ASSERT_TRUE(builder.ddp());
  const uint32_t position = 12 + 36 + 16 + 4 + 16 + 8 + 4 + 4;
  EXPECT_EQ(builder.ddp()->position, position);
  EXPECT_EQ(builder.size(), position);
  EXPECT_EQ(builder.whole_size(), position + 1004);

  CompoundCallReader call(bytes, xdr::OutOfBand{1001, position});
  uint32_t op = 0;
  SequenceArgs sequence;
  PutfhArgs putfh;
  WriteArgs write;
  ASSERT_TRUE(call.next_op(op) && call.args(sequence));
  ASSERT_TRUE(call.next_op(op) && call.args(putfh));
  ASSERT_TRUE(call.next_op(op) && call.args(write));
  EXPECT_EQ(op, static_cast<uint32_t>(Op::write));
  EXPECT_EQ(write.data.length, 1001u);
  EXPECT_EQ(write.offset, 9u);
  EXPECT_TRUE(call.at_end());
  EXPECT_TRUE(call.ddp());
}

TEST_F(Compound, CallThatDoesNotFitIsEmpty) {
  const size_t need = read_call().finish().size();
  for (size_t room = 0; room < need; ++room) {
    Buffer small(room);
    CompoundBuilder builder(small, 1);
    builder.add(SequenceArgs{});
    builder.add(PutfhArgs{.fh = FileHandle(some_bytes)});
    builder.add(ReadArgs{.count = 5});
    EXPECT_TRUE(builder.finish().empty());
    EXPECT_EQ(builder.fault(), xdr::Fault::overflow);
  }
}

TEST_F(Compound, NameAboveItsLimitIsAFault) {
  const std::string name(component_bytes_max + 1, 'n');
  Buffer big(100000);
  CompoundBuilder builder(big, 1);
  builder.add(LookupArgs{name});
  EXPECT_TRUE(builder.finish().empty());
  EXPECT_EQ(builder.fault(), xdr::Fault::limit);
}

TEST_F(Compound, ServerReadsWhatTheClientBuilt) {
  CompoundBuilder builder = CompoundBuilder::tagged(call_, 2, "trace");
  builder.add(PutrootfhArgs{});
  builder.add(LookupArgs{"name"});
  CompoundCallReader call(builder.finish());
  ASSERT_TRUE(call.ok());
  EXPECT_EQ(call.tag(), "trace");
  EXPECT_EQ(call.minor_version(), 2u);
  EXPECT_EQ(call.op_count(), 2u);
  uint32_t op = 0;
  PutrootfhArgs root;
  LookupArgs lookup;
  ASSERT_TRUE(call.next_op(op));
  EXPECT_EQ(op, static_cast<uint32_t>(Op::putrootfh));
  ASSERT_TRUE(call.args(root));
  EXPECT_FALSE(call.at_end());
  ASSERT_TRUE(call.next_op(op));
  ASSERT_TRUE(call.args(lookup));
  EXPECT_EQ(lookup.name, "name");
  EXPECT_FALSE(call.next_op(op));
  EXPECT_TRUE(call.at_end());
}

TEST_F(Compound, ServerSeesTruncatedCalls) {
  CompoundBuilder builder = read_call();
  const ByteView whole = builder.finish();
  for (size_t n = 0; n < whole.size(); ++n) {
    const Buffer cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    CompoundCallReader call(cut);
    uint32_t op = 0;
    SequenceArgs sequence;
    PutfhArgs putfh;
    ReadArgs read;
    const bool all = call.next_op(op) && call.args(sequence) && call.next_op(op) && call.args(putfh) &&
                     call.next_op(op) && call.args(read);
    EXPECT_FALSE(all && call.at_end()) << n;
    EXPECT_FALSE(call.ok());
  }
}

TEST_F(Compound, OperationCountsAreBounded) {
  for (uint32_t count : {3u, 1025u, UINT32_MAX}) {
    const Buffer bytes = encode(std::array<uint32_t, 5>{0, 1, count, 24, 10});
    CompoundCallReader call(bytes);
    EXPECT_FALSE(call.ok()) << count;
    uint32_t op = 0;
    EXPECT_FALSE(call.next_op(op));
  }
}

TEST_F(Compound, ReplyThatDoesNotFitIsLeftAsItWas) {
  const ReadResult read{false, xdr::DdpItem::of(some_bytes)};
  for (uint32_t room = 0; room < 200; ++room) {
    CompoundReplyBuilder builder(std::span<std::byte>(reply_).first(room));
    const bool first = builder.append(SequenceResult{});
    if (!first) {
      EXPECT_LT(room, 12u + 44 + CompoundReplyBuilder::failure_reserve_bytes);
      continue;
    }
    const uint32_t before = builder.size();
    if (!builder.append(read)) {
      EXPECT_EQ(builder.size(), before);
      ASSERT_TRUE(builder.append_failure<SetattrResult>(Status::rep_too_big)) << "room is kept for this";
      CompoundReader reader(builder.finish(), 2);
      EXPECT_TRUE(reader.next<SequenceResult>());
      EXPECT_FALSE(reader.next<SetattrResult>());
      EXPECT_FALSE(reader.malformed());
      EXPECT_EQ(reader.op_status(), Status::rep_too_big);
    } else {
      EXPECT_GE(room, 12u + 44 + 16 + 64 + CompoundReplyBuilder::failure_reserve_bytes);
    }
  }
}

TEST_F(Compound, ReplyRollsBackToAMark) {
  CompoundReplyBuilder builder(reply_, "t", xdr::Form::reduced);
  builder.append(SequenceResult{});
  const CompoundReplyBuilder::Mark mark = builder.mark();
  builder.append(ReadResult{false, xdr::DdpItem::elsewhere(100)});
  builder.append_status(Op::illegal, Status::op_illegal);
  builder.rollback(mark);
  EXPECT_EQ(builder.result_count(), 1u);
  EXPECT_EQ(builder.last_status(), Status::ok);
  EXPECT_FALSE(builder.ddp());
  CompoundReader reader(builder.finish(), 1);
  EXPECT_TRUE(reader.next<SequenceResult>());
  EXPECT_TRUE(reader.finish());
  EXPECT_EQ(reader.tag(), "t");
}

TEST_F(Compound, CallbacksBothWays) {
  CompoundBuilder builder = CompoundBuilder::callback(call_, 1, 77);
  const std::array<ReferringCall, 2> calls{ReferringCall{5, 1}, ReferringCall{6, 2}};
  const std::array<ReferringCallList, 1> lists{ReferringCallList{{}, calls}};
  CbSequenceArgs sequence;
  sequence.referring_calls = lists;
  builder.add(sequence);
  builder.add(CbRecallArgs{.stateid = {3, {}}, .truncate = true, .fh = FileHandle(some_bytes)});
  uint32_t ident = 0;
  CompoundCallReader call(builder.finish(), ident);
  EXPECT_EQ(ident, 77u);
  uint32_t op = 0;
  CbSequenceArgs sequence_back;
  CbRecallArgs recall;
  ASSERT_TRUE(call.next_op(op) && call.args(sequence_back));
  EXPECT_EQ(op, static_cast<uint32_t>(CbOp::sequence));
  ASSERT_TRUE(call.next_op(op) && call.args(recall));
  EXPECT_TRUE(call.at_end());
  EXPECT_TRUE(recall.truncate);
  ASSERT_EQ(sequence_back.referring_calls.size(), 1u);
  uint32_t sum = 0;
  for (const ReferringCallList& list : sequence_back.referring_calls) {
    for (const ReferringCall& referring : list.calls) sum += referring.sequenceid * 10 + referring.slotid;
  }
  EXPECT_EQ(sum, 113u);

  CompoundReplyBuilder replier(reply_);
  replier.append(CbSequenceResult{});
  replier.append_failure<CbRecallResult>(Status::badhandle);
  CompoundReader reader(replier.finish(), 2);
  EXPECT_TRUE(reader.next<CbSequenceResult>());
  EXPECT_FALSE(reader.next<CbRecallResult>());
  EXPECT_EQ(reader.op_status(), Status::badhandle);
  EXPECT_FALSE(reader.malformed());
}

TEST_F(Compound, ReaderSurvivesHostileReplies) {
  const ByteView good = read_reply();
  xdr::Generator generator(11);
  for (int round = 0; round < 20000; ++round) {
    Buffer bytes(good.begin(), good.end());
    for (uint32_t hits = 1 + generator.below(3); hits > 0; --hits) {
      bytes[generator.below(static_cast<uint32_t>(bytes.size()))] =
          static_cast<std::byte>(generator.below(256));
    }
    CompoundReader reader(bytes, 3);
    ReadResult read;
    if (read_all(reader, read)) {
      ASSERT_FALSE(reader.malformed());
    } else if (!reader.malformed()) {
      ASSERT_NE(reader.op_status(), Status::ok);
    }
  }
}

}  // namespace
}  // namespace nfsrdma::nfs4::test
