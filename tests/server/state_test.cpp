// SPDX-License-Identifier: Apache-2.0
// Opens, stateids, byte-range locks, delegations.
#include "server/lock_ranges.hpp"
#include "tests/server/harness.hpp"

namespace nfsrdma::server::testing {
namespace {

TEST(LockRanges, FollowPosix) {
  LockOwner a, b;
  LockRanges r;
  r.set({0, 99, true, &a});
  EXPECT_TRUE(r.conflict({50, 60, false, &b}));
  EXPECT_FALSE(r.conflict({100, 200, true, &b}));
  EXPECT_FALSE(r.conflict({50, 60, true, &a}));
  // A hole in the middle.
  r.clear(&a, 40, 59);
  EXPECT_EQ(r.size(), 2u);
  EXPECT_FALSE(r.conflict({40, 59, true, &b}));
  EXPECT_TRUE(r.conflict({39, 39, true, &b}));
  EXPECT_TRUE(r.conflict({60, 60, true, &b}));
  // Filled again it is one range.
  r.set({40, 59, true, &a});
  EXPECT_EQ(r.size(), 1u);
  // A part becomes a read lock.
  r.set({10, 19, false, &a});
  EXPECT_EQ(r.size(), 3u);
  EXPECT_FALSE(r.conflict({10, 19, false, &b}));
  EXPECT_TRUE(r.conflict({10, 19, true, &b}));
  r.clear(&a, 0, UINT64_MAX);
  EXPECT_EQ(r.size(), 0u);
  // To the end of everything.
  r.set({5, UINT64_MAX, true, &a});
  r.clear(&a, UINT64_MAX, UINT64_MAX);
  EXPECT_FALSE(r.conflict({UINT64_MAX, UINT64_MAX, true, &b}));
  EXPECT_TRUE(r.conflict({UINT64_MAX - 1, UINT64_MAX, true, &b}));
}

// Random calls against a plain array.
TEST(LockRanges, AgreeWithAnArray) {
  constexpr uint64_t size = 40;
  base::SeededRandom random(7);
  std::array<LockOwner, 3> owners;
  std::array<std::array<int, size>, 3> model{};  // 0 none, 1 read, 2 write
  LockRanges ranges;
  for (int i = 0; i < 20000; ++i) {
    size_t who = random.below(3);
    uint64_t first = random.below(size), last = first + random.below(size - first);
    bool write = random.below(2) != 0;
    bool conflict = false;
    for (size_t o = 0; o < 3; ++o) {
      for (uint64_t at = first; at <= last; ++at) conflict |= o != who && (model[o][at] == 2 || (write && model[o][at]));
    }
    LockRange wanted{first, last, write, &owners[who]};
    ASSERT_EQ(ranges.conflict(wanted) != nullptr, conflict);
    int value = random.below(3) == 0 ? 0 : write ? 2 : 1;
    if (value == 0) {
      ranges.clear(&owners[who], first, last);
    } else if (conflict) {
      continue;
    } else {
      ranges.set(wanted);
    }
    for (uint64_t at = first; at <= last; ++at) model[who][at] = value;
  }
}

class StateTest : public ::testing::Test {
 protected:
  ServerParams params() {
    ServerParams p;
    p.state.lease_ns = base::seconds(30);
    p.state.delegations = delegations;
    return p;
  }
  void start() {
    rig = std::make_unique<Rig>(dir, params());
    a = std::make_unique<TestClient>(*rig, "a", true);
    b = std::make_unique<TestClient>(*rig, "b", true);
    a->establish();
    b->establish();
  }
  Status close(TestClient& c, const FileHandle& fh, const Stateid& stateid) {
    CloseArgs args;
    args.stateid = stateid;
    return c.run(putfh(fh), args).status();
  }
  Reply write(TestClient& c, const FileHandle& fh, const Stateid& stateid, const std::string& text, uint64_t at = 0) {
    WriteArgs args;
    args.stateid = stateid;
    args.offset = at;
    args.data = xdr::DdpItem::of(base::bytes_of(text));
    return c.run(putfh(fh), args);
  }
  Reply read(TestClient& c, const FileHandle& fh, const Stateid& stateid) {
    ReadArgs args;
    args.stateid = stateid;
    args.count = 100;
    return c.run(putfh(fh), args);
  }
  Reply lock(TestClient& c, const FileHandle& fh, const Stateid& open, const std::string& owner, LockType type,
             uint64_t offset, uint64_t length) {
    LockArgs args;
    args.type = type;
    args.offset = offset;
    args.length = length;
    args.new_owner = true;
    args.open_stateid = open;
    args.owner.owner = base::bytes_of(owner);
    return c.run(putfh(fh), args);
  }
  // The callback that waits at a client, decoded; answers it.
  std::optional<CbRecallArgs> answer_recall(TestClient& c, Status status = Status::ok) {
    bool waiting = false;
    for (int i = 0; i < 20 && !waiting; ++i) {
      rig->loop->turn(rig->clock.now_ns() + base::ms(5));
      waiting = !c.connection->callbacks.empty();
    }
    if (!waiting) return std::nullopt;
    auto pending = std::move(c.connection->callbacks.front());
    c.connection->callbacks.pop_front();
    uint32_t at = 0, ident = 0;
    auto header = rpc::decode_call_header(pending.message, at);
    EXPECT_TRUE(header);
    EXPECT_EQ(header->program, 0x40000000u);
    CompoundCallReader reader(base::ConstBytes(pending.message).subspan(at), ident);
    uint32_t op = 0;
    CbSequenceArgs sequence;
    CbRecallArgs recall;
    EXPECT_TRUE(reader.next_op(op) && reader.args(sequence) && reader.next_op(op) && reader.args(recall));
    EXPECT_TRUE(reader.at_end());
    EXPECT_EQ(sequence.session_id, c.session.session_id);
    last_callback_sequence = sequence.sequenceid;
    std::vector<std::byte> answer(512);
    uint32_t n = rpc::encode_reply_header(answer, header->xid, rpc::AcceptStatus::success);
    CompoundReplyBuilder builder(base::Bytes(answer).subspan(n));
    CbSequenceResult result;
    result.session_id = sequence.session_id;
    result.sequenceid = sequence.sequenceid;
    builder.append(result);
    if (status == Status::ok) {
      builder.append(CbRecallResult{});
    } else {
      builder.append_status(CbOp::recall, status);
    }
    answer.resize(n + builder.finish().size());
    pending.done(base::ConstBytes(answer));
    return recall;
  }

  TempDir dir;
  Delegations delegations = Delegations::none;
  std::unique_ptr<Rig> rig;
  std::unique_ptr<TestClient> a, b;
  uint32_t last_callback_sequence = 0;
};

TEST_F(StateTest, OpenUpgradesAndCloses) {
  start();
  auto first = a->open("f", share::access_read);
  ASSERT_EQ(first.status, Status::ok);
  EXPECT_EQ(first.open.stateid.seqid, 1u);
  EXPECT_EQ(write(*a, first.handle, first.open.stateid, "x").status(), Status::openmode);
  auto second = a->open("f", share::access_write, 0, false);
  ASSERT_EQ(second.status, Status::ok);
  EXPECT_TRUE(second.open.stateid.same_state(first.open.stateid));
  EXPECT_EQ(second.open.stateid.seqid, 2u);
  EXPECT_EQ(write(*a, first.handle, second.open.stateid, "hello").status(), Status::ok);
  EXPECT_EQ(write(*a, first.handle, second.open.stateid.newest(), "HE").status(), Status::ok);
  EXPECT_EQ(write(*a, first.handle, first.open.stateid, "x").status(), Status::old_stateid);
  Stateid future = second.open.stateid;
  future.seqid += 1;
  EXPECT_EQ(write(*a, first.handle, future, "x").status(), Status::bad_stateid);
  EXPECT_EQ(read(*a, first.handle, second.open.stateid).payload(), "HEllo");
  // Somebody else's stateid is nobody's.
  EXPECT_EQ(read(*b, first.handle, second.open.stateid).status(), Status::bad_stateid);
  // Another owner has a state of its own.
  auto other = a->open("f", share::access_read, 0, false, "other");
  EXPECT_FALSE(other.open.stateid.same_state(first.open.stateid));
  EXPECT_EQ(close(*a, first.handle, second.open.stateid), Status::ok);
  EXPECT_EQ(close(*a, first.handle, second.open.stateid), Status::bad_stateid);
  EXPECT_EQ(close(*a, first.handle, other.open.stateid), Status::ok);
  EXPECT_EQ(rig->server->state().counts().files, 0u);
}

TEST_F(StateTest, ShareReservationsHold) {
  start();
  auto first = a->open("f", share::access_both, share::deny_write);
  ASSERT_EQ(first.status, Status::ok);
  EXPECT_EQ(b->open("f", share::access_write, 0, false).status, Status::share_denied);
  EXPECT_EQ(b->open("f", share::access_read, share::deny_read, false).status, Status::share_denied);
  auto reader = b->open("f", share::access_read, 0, false);
  EXPECT_EQ(reader.status, Status::ok);
  // Without a stateid the denial holds as well; truncation through OPEN too.
  EXPECT_EQ(write(*b, first.handle, anonymous_stateid, "x").status(), Status::locked);
  AttributeSet empty = AttributeSet::size(0);
  OpenArgs truncate;
  truncate.share_access = share::access_read;
  truncate.owner.owner = base::bytes_of("t");
  truncate.how = {OpenType::create, CreateMode::unchecked, empty.fattr, {}};
  truncate.claim.name = "f";
  ASSERT_EQ(write(*a, first.handle, first.open.stateid, "hello").status(), Status::ok);
  EXPECT_EQ(b->run(PutrootfhArgs{}, truncate).status(), Status::share_denied);
  EXPECT_EQ(dir.read("f"), "hello");
  EXPECT_EQ(close(*a, first.handle, first.open.stateid), Status::ok);
  EXPECT_EQ(write(*b, first.handle, anonymous_stateid, "x").status(), Status::ok);
}

TEST_F(StateTest, DowngradesOnlyToWhatWasOpened) {
  start();
  auto both = a->open("f", share::access_both);
  OpenDowngradeArgs down;
  down.stateid = both.open.stateid;
  down.share_access = share::access_read;
  EXPECT_EQ(a->run(putfh(both.handle), down).status(), Status::inval);
  auto reader = a->open("f", share::access_read, 0, false);
  down.stateid = reader.open.stateid;
  Reply reply = a->run(putfh(both.handle), down);
  ASSERT_EQ(reply.status(), Status::ok);
  Stateid now = reply.skip<PutfhResult>().next<OpenDowngradeResult>().stateid;
  EXPECT_EQ(now.seqid, reader.open.stateid.seqid + 1);
  EXPECT_EQ(write(*a, both.handle, now, "x").status(), Status::openmode);
  EXPECT_EQ(read(*a, both.handle, now).status(), Status::ok);
}

TEST_F(StateTest, CreateModes) {
  start();
  AttributeSet mode = AttributeSet::mode(0640);
  OpenArgs args;
  args.share_access = share::access_both;
  args.owner.owner = base::bytes_of("o");
  args.claim.name = "f";
  args.how = {OpenType::create, CreateMode::guarded, mode.fattr, {}};
  EXPECT_EQ(a->run(PutrootfhArgs{}, args).status(), Status::ok);
  EXPECT_EQ(a->run(PutrootfhArgs{}, args).status(), Status::exist);
  struct stat st {};
  ASSERT_EQ(stat(dir.path("f").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0640u);
  args.claim.name = "x";
  args.how.mode = CreateMode::exclusive4_1;
  args.how.verifier = {std::byte{1}, std::byte{2}};
  Reply reply = a->run(PutrootfhArgs{}, args);
  ASSERT_EQ(reply.status(), Status::ok);
  Bitmap set = reply.skip<PutrootfhResult>().next<OpenResult>().attributes_set;
  EXPECT_TRUE(set.test(attr::mode));
  EXPECT_TRUE(set.test(attr::time_access) && set.test(attr::time_modify));
  EXPECT_EQ(a->run(PutrootfhArgs{}, args).status(), Status::ok);
  args.how.verifier[0] = std::byte{9};
  EXPECT_EQ(a->run(PutrootfhArgs{}, args).status(), Status::exist);
  // Times hold the verifier and cannot be given.
  Attributes times;
  times.time_modify_set.how = TimeHow::server_time;
  AttributeSet with_times({attr::time_modify_set}, times);
  args.how.attributes = with_times.fattr;
  args.claim.name = "y";
  EXPECT_EQ(a->run(PutrootfhArgs{}, args).status(), Status::inval);
}

TEST_F(StateTest, OpenRefusesWhatIsNoFile) {
  std::filesystem::create_directory(dir.path("d"));
  std::filesystem::create_symlink("d", dir.path("l"));
  start();
  EXPECT_EQ(a->open("d", share::access_read, 0, false).status, Status::isdir);
  EXPECT_EQ(a->open("l", share::access_read, 0, false).status, Status::symlink);
  EXPECT_EQ(a->open("none", share::access_read, 0, false).status, Status::noent);
  EXPECT_EQ(a->open("", share::access_read).status, Status::inval);
  EXPECT_EQ(a->open("a/b", share::access_read).status, Status::badchar);
  EXPECT_EQ(a->open("..", share::access_read).status, Status::badname);
  EXPECT_EQ(a->open(std::string(256, 'n'), share::access_read).status, Status::nametoolong);
  EXPECT_EQ(a->open(std::string(255, 'n'), share::access_read).status, Status::ok);
  EXPECT_EQ(a->open("f", 0).status, Status::inval);
  EXPECT_EQ(a->open("f", 3, 4).status, Status::inval);
}

TEST_F(StateTest, TheCurrentStateidIsWhatTheLastOperationLeft) {
  start();
  OpenArgs open;
  open.share_access = share::access_both;
  open.owner.owner = base::bytes_of("o");
  open.claim.name = "f";
  AttributeSet mode = AttributeSet::mode(0644);
  open.how = {OpenType::create, CreateMode::unchecked, mode.fattr, {}};
  WriteArgs write;
  write.stateid = current_stateid;
  write.data = xdr::DdpItem::of(base::bytes_of("hello"));
  CloseArgs close;
  close.stateid = current_stateid;
  EXPECT_EQ(a->run(PutrootfhArgs{}, open, write, close).status(), Status::ok);
  EXPECT_EQ(dir.read("f"), "hello");
  // A new file handle has none.
  EXPECT_EQ(a->run(PutrootfhArgs{}, open, PutrootfhArgs{}, close).status(), Status::bad_stateid);
}

TEST_F(StateTest, LocksConflictAndGo) {
  start();
  auto fa = a->open("f");
  auto fb = b->open("f", share::access_both, 0, false);
  Reply reply = lock(*a, fa.handle, fa.open.stateid, "la", LockType::write, 10, 10);
  ASSERT_EQ(reply.status(), Status::ok);
  Stateid la = reply.skip<PutfhResult>().next<LockResult>().stateid;
  reply = lock(*b, fa.handle, fb.open.stateid, "lb", LockType::read, 15, 1);
  ASSERT_EQ(reply.status(), Status::denied);
  reply.skip<PutfhResult>();
  LockResult denied;
  EXPECT_FALSE(reply.reader().next(denied));
  EXPECT_EQ(denied.denied.offset, 10u);
  EXPECT_EQ(denied.denied.length, 10u);
  EXPECT_EQ(denied.denied.type, LockType::write);
  EXPECT_EQ(denied.denied.owner.clientid, a->clientid);
  EXPECT_EQ(base::text_of(denied.denied.owner.owner), "la");
  LocktArgs test;
  test.type = LockType::read;
  test.length = length_to_end;
  test.owner.owner = base::bytes_of("lb");
  EXPECT_EQ(b->run(putfh(fa.handle), test).status(), Status::denied);
  EXPECT_EQ(lock(*b, fa.handle, fb.open.stateid, "lb", LockType::write, 20, length_to_end).status(), Status::ok);
  // Data may be read and written with the lock's stateid.
  EXPECT_EQ(write(*a, fa.handle, la, "x").status(), Status::ok);
  FreeStateidArgs free;
  free.stateid = la;
  EXPECT_EQ(a->run(free).status(), Status::locks_held);
  LockuArgs unlock;
  unlock.type = LockType::write;
  unlock.stateid = la;
  unlock.length = length_to_end;
  reply = a->run(putfh(fa.handle), unlock);
  ASSERT_EQ(reply.status(), Status::ok);
  free.stateid = reply.skip<PutfhResult>().next<LockuResult>().stateid;
  EXPECT_EQ(lock(*b, fa.handle, fb.open.stateid, "lb", LockType::write, 0, 20).status(), Status::ok);
  EXPECT_EQ(a->run(free).status(), Status::ok);
  EXPECT_EQ(a->run(free).status(), Status::bad_stateid);
  // Ranges that make no sense.
  EXPECT_EQ(lock(*a, fa.handle, fa.open.stateid, "l", LockType::read, 0, 0).status(), Status::inval);
  EXPECT_EQ(lock(*a, fa.handle, fa.open.stateid, "l", LockType::read, 10, UINT64_MAX - 5).status(), Status::inval);
  // Closing lets them go.
  EXPECT_EQ(close(*b, fa.handle, fb.open.stateid), Status::ok);
  EXPECT_EQ(lock(*a, fa.handle, fa.open.stateid, "l", LockType::write, 0, length_to_end).status(), Status::ok);
  EXPECT_EQ(rig->server->state().counts().locks, 1u);
}

TEST_F(StateTest, LocksNeedTheRightOpenMode) {
  start();
  auto f = a->open("f", share::access_read);
  EXPECT_EQ(lock(*a, f.handle, f.open.stateid, "l", LockType::write, 0, 1).status(), Status::openmode);
  EXPECT_EQ(lock(*a, f.handle, f.open.stateid, "l", LockType::read, 0, 1).status(), Status::ok);
}

TEST_F(StateTest, TestStateidTells) {
  start();
  auto f = a->open("f");
  Stateid wrong = f.open.stateid;
  wrong.other[11] ^= std::byte{0x40};
  Stateid old = f.open.stateid;
  old.other[0] ^= std::byte{1};
  std::array<Stateid, 4> ids{f.open.stateid, wrong, old, anonymous_stateid};
  TestStateidArgs args;
  args.stateids = std::span<const Stateid>(ids);
  Reply reply = a->run(args);
  ASSERT_EQ(reply.status(), Status::ok);
  std::vector<Status> found;
  for (Status s : reply.next<TestStateidResult>().statuses) found.push_back(s);
  EXPECT_EQ(found, (std::vector<Status>{Status::ok, Status::bad_stateid, Status::stale_stateid, Status::bad_stateid}));
  FreeStateidArgs free;
  free.stateid = f.open.stateid;
  EXPECT_EQ(a->run(free).status(), Status::locks_held);
}

TEST_F(StateTest, ReadDelegationsAreGivenAndRecalled) {
  delegations = Delegations::read;
  dir.write("f", "hello");
  start();
  auto f = a->open("f", share::access_read, 0, false);
  ASSERT_EQ(f.status, Status::ok);
  ASSERT_EQ(f.open.delegation.type, DelegationType::read);
  Stateid delegation = f.open.delegation.stateid;
  EXPECT_EQ(read(*a, f.handle, delegation).payload(), "hello");
  EXPECT_EQ(write(*a, f.handle, delegation, "x").status(), Status::openmode);
  // Another reader is no conflict and gets one too.
  auto g = b->open("f", share::access_read, 0, false);
  EXPECT_EQ(g.open.delegation.type, DelegationType::read);
  // A writer is: both are called, himself not.
  EXPECT_EQ(b->open("f", share::access_write, 0, false).status, Status::delay);
  auto recall = answer_recall(*a);
  ASSERT_TRUE(recall);
  EXPECT_EQ(recall->stateid, delegation);
  EXPECT_EQ(recall->fh, f.handle);
  EXPECT_EQ(last_callback_sequence, 1u);
  EXPECT_FALSE(answer_recall(*b));
  EXPECT_EQ(b->open("f", share::access_write, 0, false).status, Status::delay);
  // Opens under the delegation become real ones, then it goes back.
  OpenArgs claim;
  claim.share_access = share::access_read;
  claim.owner.owner = base::bytes_of("late");
  claim.claim.type = ClaimType::deleg_cur_fh;
  claim.claim.stateid = delegation;
  EXPECT_EQ(a->run(putfh(f.handle), claim).status(), Status::ok);
  DelegreturnArgs give_back;
  give_back.stateid = delegation;
  EXPECT_EQ(a->run(putfh(f.handle), give_back).status(), Status::ok);
  EXPECT_EQ(a->run(putfh(f.handle), give_back).status(), Status::bad_stateid);
  EXPECT_EQ(b->open("f", share::access_write, 0, false).status, Status::ok);
  // Not given again while somebody writes.
  EXPECT_EQ(a->open("f", share::access_read, 0, false).open.delegation.type, DelegationType::none);
}

TEST_F(StateTest, EveryChangeRecallsDelegations) {
  delegations = Delegations::read;
  for (const char* name : {"remove", "rename", "replaced", "link", "setattr"}) dir.write(name, "x");
  start();
  auto hold = [&](const std::string& name) {
    auto f = a->open(name, share::access_read, 0, false);
    EXPECT_EQ(f.open.delegation.type, DelegationType::read) << name;
    return f.handle;
  };
  RemoveArgs remove;
  remove.name = "remove";
  hold("remove");
  EXPECT_EQ(b->run(PutrootfhArgs{}, remove).status(), Status::delay);
  RenameArgs rename;
  rename.old_name = "rename";
  rename.new_name = "fresh";
  hold("rename");
  EXPECT_EQ(b->run(PutrootfhArgs{}, SavefhArgs{}, rename).status(), Status::delay);
  rename.old_name = "setattr";
  rename.new_name = "replaced";
  hold("replaced");
  EXPECT_EQ(b->run(PutrootfhArgs{}, SavefhArgs{}, rename).status(), Status::delay);
  LinkArgs link;
  link.new_name = "link2";
  FileHandle linked = hold("link");
  EXPECT_EQ(b->run(putfh(linked), SavefhArgs{}, PutrootfhArgs{}, link).status(), Status::delay);
  SetattrArgs set;
  AttributeSet mode = AttributeSet::mode(0600);
  set.attributes = mode.fattr;
  FileHandle changed = hold("setattr");
  EXPECT_EQ(b->run(putfh(changed), set).status(), Status::delay);
  for (int i = 0; i < 5; ++i) {
    auto recall = answer_recall(*a);
    ASSERT_TRUE(recall);
    EXPECT_EQ(last_callback_sequence, static_cast<uint32_t>(i + 1));
    DelegreturnArgs give_back;
    give_back.stateid = recall->stateid;
    EXPECT_EQ(a->run(putfh(recall->fh), give_back).status(), Status::ok);
  }
  EXPECT_EQ(b->run(putfh(changed), set).status(), Status::ok);
  EXPECT_EQ(b->run(PutrootfhArgs{}, remove).status(), Status::ok);
}

TEST_F(StateTest, ADelegationNotReturnedIsRevoked) {
  delegations = Delegations::read;
  dir.write("f", "x");
  start();
  auto f = a->open("f", share::access_read, 0, false);
  Stateid delegation = f.open.delegation.stateid;
  EXPECT_EQ(b->open("f", share::access_write, 0, false).status, Status::delay);
  ASSERT_TRUE(answer_recall(*a));
  rig->clock.advance(base::seconds(20));
  EXPECT_EQ(a->run().status(), Status::ok);
  EXPECT_EQ(b->run().status(), Status::ok);
  rig->clock.advance(base::seconds(15));
  rig->server->state().tick();
  EXPECT_EQ(b->open("f", share::access_write, 0, false).status, Status::ok);
  Reply reply = a->alone(a->next_sequence());
  ++a->sequence;
  EXPECT_TRUE(reply.next<SequenceResult>().status_flags & sequence_flag::recallable_state_revoked);
  DelegreturnArgs give_back;
  give_back.stateid = delegation;
  EXPECT_EQ(a->run(putfh(f.handle), give_back).status(), Status::deleg_revoked);
  FreeStateidArgs free;
  free.stateid = delegation;
  EXPECT_EQ(a->run(free).status(), Status::ok);
  reply = a->alone(a->next_sequence());
  EXPECT_EQ(reply.next<SequenceResult>().status_flags, 0u);
}

TEST_F(StateTest, UnansweredCallbacksAreSeenAndGoAgainAfterABind) {
  delegations = Delegations::read;
  dir.write("f", "x");
  start();
  a->open("f", share::access_read, 0, false);
  EXPECT_EQ(b->open("f", share::access_write, 0, false).status, Status::delay);
  rig->wait([&] { return !a->connection->callbacks.empty(); });
  // The answer never comes.
  rig->clock.advance(base::seconds(4));
  rig->loop->turn(rig->clock.now_ns());
  auto flags = [&] {
    Reply reply = a->alone(a->next_sequence());
    ++a->sequence;
    return reply.next<SequenceResult>().status_flags;
  };
  EXPECT_EQ(flags(), sequence_flag::backchannel_fault);
  a->connection->callbacks.clear();
  // Bound again, the same call goes out under the same sequence id.
  BindConnToSessionArgs bind;
  bind.session_id = a->session.session_id;
  bind.direction = ChannelDirection::fore_or_both;
  EXPECT_EQ(a->alone(bind).status(), Status::ok);
  ASSERT_TRUE(answer_recall(*a));
  EXPECT_EQ(last_callback_sequence, 1u);
  EXPECT_EQ(flags(), 0u);
}

TEST_F(StateTest, LocalChangesRecallDelegations) {
  delegations = Delegations::read;
  for (const char* name : {"written", "chmod", "removed", "untouched"}) dir.write(name, "x");
  start();
  rig->server->start_housekeeping(*rig->loop);
  std::set<std::string> held;
  for (const char* name : {"written", "chmod", "removed", "untouched"}) {
    auto f = a->open(name, share::access_read, 0, false);
    EXPECT_EQ(f.open.delegation.type, DelegationType::read) << name;
    held.insert(std::string(base::text_of(f.handle.bytes())));
  }
  EXPECT_FALSE(answer_recall(*a));
  dir.write("written", "y");
  chmod(dir.path("chmod").c_str(), 0600);
  std::filesystem::remove(dir.path("removed"));
  for (int i = 0; i < 3; ++i) {
    auto recall = answer_recall(*a);
    ASSERT_TRUE(recall);
    EXPECT_EQ(held.erase(std::string(base::text_of(recall->fh.bytes()))), 1u);
  }
  EXPECT_FALSE(answer_recall(*a));
}

TEST_F(StateTest, WriteDelegationsOnlyOnCommand) {
  delegations = Delegations::read;
  start();
  EXPECT_EQ(a->open("f").open.delegation.type, DelegationType::none);
  rig.reset();
  delegations = Delegations::write;
  start();
  auto f = a->open("g", share::access_both | share::want_write_deleg);
  ASSERT_EQ(f.open.delegation.type, DelegationType::write);
  EXPECT_EQ(write(*a, f.handle, f.open.delegation.stateid, "hello").status(), Status::ok);
  // Even a reader is a conflict now.
  EXPECT_EQ(b->open("g", share::access_read, 0, false).status, Status::delay);
  EXPECT_TRUE(answer_recall(*a));
  auto unwanted = a->open("h", share::access_both | share::want_no_deleg);
  EXPECT_EQ(unwanted.open.delegation.type, DelegationType::none_ext);
  EXPECT_EQ(unwanted.open.delegation.why, WhyNoDelegation::not_wanted);
}

TEST_F(StateTest, NoDelegationWithoutABackChannel) {
  delegations = Delegations::read;
  dir.write("f", "x");
  start();
  TestClient c(*rig, "c", false);
  c.establish();
  EXPECT_EQ(c.open("f", share::access_read, 0, false).open.delegation.type, DelegationType::none);
}

TEST_F(StateTest, LimitsOnOpensAndLocks) {
  ServerParams p = params();
  p.state.limits.opens_per_client = 2;
  p.state.limits.locks_per_client = 1;
  Rig limited(dir, p);
  TestClient c(limited, "c");
  c.establish();
  auto f = c.open("f");
  EXPECT_EQ(c.open("g").status, Status::ok);
  EXPECT_EQ(c.open("h").status, Status::resource);
  EXPECT_EQ(lock(c, f.handle, f.open.stateid, "1", LockType::read, 0, 1).status(), Status::ok);
  EXPECT_EQ(lock(c, f.handle, f.open.stateid, "2", LockType::read, 0, 1).status(), Status::resource);
}

}  // namespace
}  // namespace nfsrdma::server::testing
