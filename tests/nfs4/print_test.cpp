// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "nfs4/compound.hpp"
#include "nfs4/compound_server.hpp"
#include "nfs4/print.hpp"
#include "tests/nfs4/all_types.hpp"

namespace nfsrdma::nfs4::test {
namespace {

TEST(Print, CallAndReply) {
  Buffer out(4096);
  CompoundBuilder builder(out, 1);
  builder.add(LookupArgs{"etc"});
  builder.add(GetattrArgs{Bitmap{attr::type, attr::size}});
  builder.add(PutrootfhArgs{});
  EXPECT_EQ(print_compound_call(builder.finish()),
            "v1 LOOKUP{name=\"etc\"} GETATTR{mask=<type,size>} PUTROOTFH{}");

  CompoundReplyBuilder replier(out);
  replier.append(AccessResult{1, 1});
  replier.append_failure<LookupResult>(Status::noent);
  EXPECT_EQ(print_compound_reply(replier.finish()), "NOENT ACCESS{supported=1 access=1} LOOKUP=NOENT{}");
}

TEST(Print, Callbacks) {
  Buffer out(4096);
  CompoundBuilder builder = CompoundBuilder::callback(out, 1);
  builder.add(CbRecallSlotArgs{7});
  EXPECT_EQ(print_compound_call(builder.finish(), Channel::back),
            "v1 CB_RECALL_SLOT{target_highest_slotid=7}");
  CompoundReplyBuilder replier(out);
  replier.append(CbRecallSlotResult{});
  EXPECT_EQ(print_compound_reply(replier.finish(), Channel::back), "OK CB_RECALL_SLOT{}");
}

TEST(Print, SaysWhatItCannotRead) {
  EXPECT_EQ(print_compound_call({}), "v0 <malformed: truncated>");
  Buffer unknown = encode(std::array<uint32_t, 5>{0, 1, 1, 70, 0});
  EXPECT_EQ(print_compound_call(unknown), "v1 WRITE_SAME <4 bytes unread>");
  unknown = encode(std::array<uint32_t, 5>{0, 0, 1, 4000, 5});
  EXPECT_EQ(print_compound_reply(unknown), "OK UNKNOWN_OP <4 bytes unread>");
}

TEST(Print, SurvivesHostileBytes) {
  xdr::Generator generator(31);
  for (int round = 0; round < 3000; ++round) {
    Buffer bytes(generator.below(200));
    generator.fixed(bytes.data(), bytes.size());
    if (bytes.size() > 16) {
      xdr::store_u32(bytes.data(), 0);
      xdr::store_u32(bytes.data() + 8, generator.below(10));
      xdr::store_u32(bytes.data() + 12, generator.below(60));
    }
    for (Channel channel : {Channel::fore, Channel::back}) {
      EXPECT_LT(print_compound_call(bytes, channel).size(), 100000u);
      EXPECT_LT(print_compound_reply(bytes, channel).size(), 100000u);
    }
  }
}

}  // namespace
}  // namespace nfsrdma::nfs4::test
