// SPDX-License-Identifier: Apache-2.0
// Differential test: random values of every type, encoded by us, must be exactly what libtirpc reads and
// writes.
#include <gtest/gtest.h>

#include "nfs4/compound.hpp"
#include "nfs4/compound_server.hpp"
#include "tests/nfs4/oracle.hpp"

namespace nfsrdma::nfs4::test {
namespace {

constexpr int rounds = 150;

template <class Ours, class Theirs>
void compare(xdr::Generator& generator, bool_t (*proc)(XDR*, Theirs*)) {
  SCOPED_TRACE(type_name<Ours>());
  for (int round = 0; round < rounds; ++round) {
    Ours value{};
    generate(generator, value);
    const Buffer bytes = encode(value);
    ASSERT_FALSE(bytes.empty());
    ASSERT_EQ(through_oracle(bytes, proc), bytes);
    generator.clear();
  }
}

TEST(Oracle, Parts) {
  xdr::Generator g(100);
  compare<Stateid>(g, xdr_stateid4);
  compare<FileHandle>(g, xdr_nfs_fh4);
  compare<Bitmap>(g, xdr_bitmap4);
  compare<Time>(g, xdr_nfstime4);
  compare<Fsid>(g, xdr_fsid4);
  compare<ChangeInfo>(g, xdr_change_info4);
  compare<Device>(g, xdr_specdata4);
  compare<StateOwner>(g, xdr_state_owner4);
  compare<ClientOwner>(g, xdr_client_owner4);
  compare<ServerOwner>(g, xdr_server_owner4);
  compare<ImplId>(g, xdr_nfs_impl_id4);
  compare<Ace>(g, xdr_nfsace4);
  compare<Fattr>(g, xdr_fattr4);
  compare<AuthSysParms>(g, xdr_cb_authsys_parms);
  compare<CallbackSecParms>(g, xdr_callback_sec_parms4);
  compare<StateProtectArgs>(g, xdr_state_protect4_a);
  compare<StateProtectResult>(g, xdr_state_protect4_r);
  compare<ChannelAttrs>(g, xdr_channel_attrs4);
  compare<OpenHow>(g, xdr_openflag4);
  compare<OpenClaim>(g, xdr_open_claim4);
  compare<SpaceLimit>(g, xdr_nfs_space_limit4);
  compare<OpenDelegation>(g, xdr_open_delegation4);
  compare<LockDenied>(g, xdr_LOCK4denied);
  compare<SecinfoEntry>(g, xdr_secinfo4);
  compare<ReferringCallList>(g, xdr_referring_call_list4);
}

TEST(Oracle, AttributeValues) {
  xdr::Generator g(101);
  compare<SetTime>(g, xdr_settime4);
  compare<FsLocation>(g, xdr_fs_location4);
  compare<FsLocations>(g, xdr_fs_locations4);
  compare<Acl41>(g, xdr_nfsacl41);
  compare<ChangePolicy>(g, xdr_change_policy4);
  compare<MaskedMode>(g, xdr_mode_masked4);
}

TEST(Oracle, Arguments) {
  xdr::Generator g(102);
  compare<AccessArgs>(g, xdr_ACCESS4args);
  compare<CloseArgs>(g, xdr_CLOSE4args);
  compare<CommitArgs>(g, xdr_COMMIT4args);
  compare<CreateArgs>(g, xdr_CREATE4args);
  compare<DelegreturnArgs>(g, xdr_DELEGRETURN4args);
  compare<GetattrArgs>(g, xdr_GETATTR4args);
  compare<LinkArgs>(g, xdr_LINK4args);
  compare<LockArgs>(g, xdr_LOCK4args);
  compare<LocktArgs>(g, xdr_LOCKT4args);
  compare<LockuArgs>(g, xdr_LOCKU4args);
  compare<LookupArgs>(g, xdr_LOOKUP4args);
  compare<NverifyArgs>(g, xdr_NVERIFY4args);
  compare<OpenArgs>(g, xdr_OPEN4args);
  compare<OpenDowngradeArgs>(g, xdr_OPEN_DOWNGRADE4args);
  compare<PutfhArgs>(g, xdr_PUTFH4args);
  compare<ReadArgs>(g, xdr_READ4args);
  compare<ReaddirArgs>(g, xdr_READDIR4args);
  compare<RemoveArgs>(g, xdr_REMOVE4args);
  compare<RenameArgs>(g, xdr_RENAME4args);
  compare<SecinfoArgs>(g, xdr_SECINFO4args);
  compare<SetattrArgs>(g, xdr_SETATTR4args);
  compare<VerifyArgs>(g, xdr_VERIFY4args);
  compare<WriteArgs>(g, xdr_WRITE4args);
  compare<BackchannelCtlArgs>(g, xdr_BACKCHANNEL_CTL4args);
  compare<BindConnToSessionArgs>(g, xdr_BIND_CONN_TO_SESSION4args);
  compare<ExchangeIdArgs>(g, xdr_EXCHANGE_ID4args);
  compare<CreateSessionArgs>(g, xdr_CREATE_SESSION4args);
  compare<DestroySessionArgs>(g, xdr_DESTROY_SESSION4args);
  compare<FreeStateidArgs>(g, xdr_FREE_STATEID4args);
  compare<SecinfoNoNameArgs>(g, xdr_SECINFO_NO_NAME4args);
  compare<SequenceArgs>(g, xdr_SEQUENCE4args);
  compare<TestStateidArgs>(g, xdr_TEST_STATEID4args);
  compare<DestroyClientidArgs>(g, xdr_DESTROY_CLIENTID4args);
  compare<ReclaimCompleteArgs>(g, xdr_RECLAIM_COMPLETE4args);
}

TEST(Oracle, ResultsOfNamesAndFiles) {
  xdr::Generator g(103);
  compare<Outcome<AccessResult>>(g, xdr_ACCESS4res);
  compare<Outcome<CloseResult>>(g, xdr_CLOSE4res);
  compare<Outcome<CommitResult>>(g, xdr_COMMIT4res);
  compare<Outcome<CreateResult>>(g, xdr_CREATE4res);
  compare<Outcome<DelegreturnResult>>(g, xdr_DELEGRETURN4res);
  compare<Outcome<GetattrResult>>(g, xdr_GETATTR4res);
  compare<Outcome<GetfhResult>>(g, xdr_GETFH4res);
  compare<Outcome<LinkResult>>(g, xdr_LINK4res);
  compare<Outcome<LockResult>>(g, xdr_LOCK4res);
  compare<Outcome<LocktResult>>(g, xdr_LOCKT4res);
  compare<Outcome<LockuResult>>(g, xdr_LOCKU4res);
  compare<Outcome<LookupResult>>(g, xdr_LOOKUP4res);
  compare<Outcome<LookuppResult>>(g, xdr_LOOKUPP4res);
  compare<Outcome<NverifyResult>>(g, xdr_NVERIFY4res);
  compare<Outcome<OpenResult>>(g, xdr_OPEN4res);
  compare<Outcome<OpenDowngradeResult>>(g, xdr_OPEN_DOWNGRADE4res);
  compare<Outcome<PutfhResult>>(g, xdr_PUTFH4res);
  compare<Outcome<PutpubfhResult>>(g, xdr_PUTPUBFH4res);
  compare<Outcome<PutrootfhResult>>(g, xdr_PUTROOTFH4res);
  compare<Outcome<ReadResult>>(g, xdr_READ4res);
  compare<Outcome<ReaddirResult>>(g, xdr_READDIR4res);
  compare<Outcome<ReadlinkResult>>(g, xdr_READLINK4res);
  compare<Outcome<RemoveResult>>(g, xdr_REMOVE4res);
  compare<Outcome<RenameResult>>(g, xdr_RENAME4res);
  compare<Outcome<RestorefhResult>>(g, xdr_RESTOREFH4res);
  compare<Outcome<SavefhResult>>(g, xdr_SAVEFH4res);
  compare<Outcome<SecinfoResult>>(g, xdr_SECINFO4res);
  compare<Outcome<SetattrResult>>(g, xdr_SETATTR4res);
  compare<Outcome<VerifyResult>>(g, xdr_VERIFY4res);
  compare<Outcome<WriteResult>>(g, xdr_WRITE4res);
  compare<Outcome<IllegalResult>>(g, xdr_ILLEGAL4res);
}

TEST(Oracle, ResultsOfSessions) {
  xdr::Generator g(104);
  compare<Outcome<BackchannelCtlResult>>(g, xdr_BACKCHANNEL_CTL4res);
  compare<Outcome<BindConnToSessionResult>>(g, xdr_BIND_CONN_TO_SESSION4res);
  compare<Outcome<ExchangeIdResult>>(g, xdr_EXCHANGE_ID4res);
  compare<Outcome<CreateSessionResult>>(g, xdr_CREATE_SESSION4res);
  compare<Outcome<DestroySessionResult>>(g, xdr_DESTROY_SESSION4res);
  compare<Outcome<FreeStateidResult>>(g, xdr_FREE_STATEID4res);
  compare<Outcome<SecinfoNoNameResult>>(g, xdr_SECINFO_NO_NAME4res);
  compare<Outcome<SequenceResult>>(g, xdr_SEQUENCE4res);
  compare<Outcome<TestStateidResult>>(g, xdr_TEST_STATEID4res);
  compare<Outcome<DestroyClientidResult>>(g, xdr_DESTROY_CLIENTID4res);
  compare<Outcome<ReclaimCompleteResult>>(g, xdr_RECLAIM_COMPLETE4res);
}

TEST(Oracle, Callbacks) {
  xdr::Generator g(105);
  compare<CbGetattrArgs>(g, xdr_CB_GETATTR4args);
  compare<CbRecallArgs>(g, xdr_CB_RECALL4args);
  compare<CbRecallAnyArgs>(g, xdr_CB_RECALL_ANY4args);
  compare<CbRecallSlotArgs>(g, xdr_CB_RECALL_SLOT4args);
  compare<CbSequenceArgs>(g, xdr_CB_SEQUENCE4args);
  compare<CbNotifyLockArgs>(g, xdr_CB_NOTIFY_LOCK4args);
  compare<Outcome<CbGetattrResult>>(g, xdr_CB_GETATTR4res);
  compare<Outcome<CbRecallResult>>(g, xdr_CB_RECALL4res);
  compare<Outcome<CbRecallAnyResult>>(g, xdr_CB_RECALL_ANY4res);
  compare<Outcome<CbRecallSlotResult>>(g, xdr_CB_RECALL_SLOT4res);
  compare<Outcome<CbSequenceResult>>(g, xdr_CB_SEQUENCE4res);
  compare<Outcome<CbNotifyLockResult>>(g, xdr_CB_NOTIFY_LOCK4res);
  compare<Outcome<CbIllegalResult>>(g, xdr_CB_ILLEGAL4res);
}

// Picks a random operation of the list and calls f with its argument type.
template <class F, class... Args>
void with_random(TypeList<Args...>, xdr::Generator& g, F&& f) {
  const uint32_t chosen = g.below(sizeof...(Args));
  uint32_t at = 0;
  ((at++ == chosen ? f.template operator()<Args>() : void()), ...);
}

TEST(Oracle, CompoundCalls) {
  xdr::Generator g(106);
  size_t total = 0;
  Buffer out(buffer_bytes);
  for (int round = 0; round < 1000; ++round) {
    std::string_view tag;
    g(xdr::bounded(tag, 20));
    CompoundBuilder builder = CompoundBuilder::tagged(out, g.below(3), tag);
    for (uint32_t n = g.below(6); n > 0; --n) {
      with_random(OpArgsList{}, g, [&]<class Args>() {
        Args args{};
        g(args);
        builder.add(args);
      });
    }
    const ByteView bytes = builder.finish();
    ASSERT_FALSE(bytes.empty());
    const Buffer copy(bytes.begin(), bytes.end());
    ASSERT_EQ(through_oracle(copy, xdr_COMPOUND4args), copy);
    total += copy.size();
    g.clear();
  }
  EXPECT_GT(total, 100000u);
}

TEST(Oracle, CompoundReplies) {
  xdr::Generator g(107);
  Buffer out(buffer_bytes);
  for (int round = 0; round < 1000; ++round) {
    std::string_view tag;
    g(xdr::bounded(tag, 20));
    CompoundReplyBuilder builder(out, tag);
    for (uint32_t n = g.below(6); n > 0 && builder.last_status() == Status::ok; --n) {
      with_random(OpArgsList{}, g, [&]<class Args>() {
        Outcome<typename Args::Result> outcome;
        generate(g, outcome);
        ASSERT_TRUE(builder.append(outcome));
      });
    }
    const ByteView bytes = builder.finish();
    ASSERT_FALSE(bytes.empty());
    const Buffer copy(bytes.begin(), bytes.end());
    ASSERT_EQ(through_oracle(copy, xdr_COMPOUND4res), copy);
    g.clear();
  }
}

TEST(Oracle, CallbackCompounds) {
  xdr::Generator g(108);
  Buffer out(buffer_bytes);
  for (int round = 0; round < 1000; ++round) {
    CompoundBuilder builder = CompoundBuilder::callback(out, 1, g.below(100));
    for (uint32_t n = g.below(4); n > 0; --n) {
      with_random(CbOpArgsList{}, g, [&]<class Args>() {
        Args args{};
        g(args);
        builder.add(args);
      });
    }
    ByteView bytes = builder.finish();
    const Buffer call(bytes.begin(), bytes.end());
    ASSERT_EQ(through_oracle(call, xdr_CB_COMPOUND4args), call);

    CompoundReplyBuilder replier(out);
    for (uint32_t n = g.below(4); n > 0; --n) {
      with_random(CbOpArgsList{}, g, [&]<class Args>() {
        Outcome<typename Args::Result> outcome;
        generate(g, outcome);
        ASSERT_TRUE(replier.append(outcome));
      });
    }
    bytes = replier.finish();
    const Buffer reply(bytes.begin(), bytes.end());
    ASSERT_EQ(through_oracle(reply, xdr_CB_COMPOUND4res), reply);
    g.clear();
  }
}

}  // namespace
}  // namespace nfsrdma::nfs4::test
