// SPDX-License-Identifier: Apache-2.0
// A reply never exceeds the bound that its arguments promise: what does not fit costs the connection.
#include <gtest/gtest.h>

#include "nfs4/compound.hpp"
#include "tests/nfs4/all_types.hpp"

namespace nfsrdma::nfs4::test {
namespace {

TEST(ReplyBounds, OfTheOperationsWithFixedResults) {
  EXPECT_EQ(reply_bytes_max(SequenceArgs{}), 44u);
  EXPECT_EQ(reply_bytes_max(PutfhArgs{}), 8u);
  EXPECT_EQ(reply_bytes_max(LookupArgs{}), 8u);
  EXPECT_EQ(reply_bytes_max(AccessArgs{}), 16u);
  EXPECT_EQ(reply_bytes_max(CommitArgs{}), 16u);
  EXPECT_EQ(reply_bytes_max(WriteArgs{}), 24u);
  EXPECT_EQ(reply_bytes_max(RemoveArgs{}), 28u);
  EXPECT_EQ(reply_bytes_max(RenameArgs{}), 48u);
  EXPECT_EQ(reply_bytes_max(CloseArgs{}), 24u);
  EXPECT_EQ(reply_bytes_max(GetfhArgs{}), 140u);
  EXPECT_EQ(reply_bytes_max(CreateArgs{}), 44u);
}

TEST(ReplyBounds, DependOnTheArguments) {
  EXPECT_EQ(reply_bytes_max(ReadArgs{.count = 5}), 24u);
  EXPECT_EQ(reply_bytes_max(ReadArgs{.count = 5}, xdr::Form::reduced), 16u);
  EXPECT_GE(reply_bytes_max(ReaddirArgs{.maxcount_bytes = 8192}), 8u + 8192);
  const std::array<Stateid, 3> stateids{};
  EXPECT_EQ(reply_bytes_max(TestStateidArgs{stateids}), 8u + 4 + 12);
  EXPECT_LT(reply_bytes_max(GetattrArgs{Bitmap{attr::type, attr::change, attr::size}}), 60u);
  EXPECT_GT(reply_bytes_max(GetattrArgs{Bitmap{attr::acl}}), 100000u);
  EXPECT_GT(reply_bytes_max(GetattrArgs{Bitmap{200}}), 100000u) << "an attribute that nobody knows";
}

TEST(ReplyBounds, TypicalCompoundsStayInline) {
  // SEQUENCE PUTFH OPEN GETFH ACCESS GETATTR must fit the 4096 bytes that every server receives, with
  // headers.
  Buffer out(4096);
  CompoundBuilder builder(out, 1);
  builder.add(SequenceArgs{});
  builder.add(PutfhArgs{});
  builder.add(OpenArgs{});
  builder.add(GetfhArgs{});
  builder.add(AccessArgs{});
  builder.add(GetattrArgs{stat_attributes});
  EXPECT_LT(builder.reply_bytes_max() + 28 + 24, 4096u);
}

TEST(ReplyBounds, HoldForGeneratedResults) {
  xdr::Generator generator(21);
  detail::each(OpArgsList{}, [&]<class Args>() {
    using Result = typename Args::Result;
    if constexpr (xdr::fixed_bytes_v<Result> != xdr::size_varies || std::is_same_v<Args, LockArgs> ||
                  std::is_same_v<Args, LocktArgs> || std::is_same_v<Args, CreateSessionArgs> ||
                  std::is_same_v<Args, GetfhArgs>) {
      SCOPED_TRACE(type_name<Args>());
      for (int round = 0; round < 200; ++round) {
        Outcome<Result> outcome;
        generate(generator, outcome);
        ASSERT_LE(4 + xdr::encoded_bytes(outcome), reply_bytes_max(Args{}));
      }
    }
  });
}

TEST(ReplyBounds, HoldForEveryFixedAttribute) {
  xdr::Generator generator(22);
  Buffer scratch(65536);
  for (uint32_t number = 0; number < attribute_number_end; ++number) {
    const AttributeInfo* info = attribute_info(number);
    if (!info->typed) continue;
    Attributes values;
    Fattr fattr;
    ASSERT_TRUE(encode_fattr(Bitmap{number}, values, scratch, fattr)) << info->name;
    EXPECT_LE(xdr::encoded_bytes(fattr), fattr_bytes_max(Bitmap{number})) << info->name;
  }
}

}  // namespace
}  // namespace nfsrdma::nfs4::test
