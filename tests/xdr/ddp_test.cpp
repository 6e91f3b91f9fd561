// SPDX-License-Identifier: Apache-2.0
// Items that travel by RDMA: whole and reduced form, positions, lengths (RFC 8166, 3.4 and 4.4).
#include <gtest/gtest.h>

#include "tests/xdr/shapes.hpp"

namespace nfsrdma::xdr::test {
namespace {

Buffer payload(uint32_t n) {
  Buffer bytes(n);
  for (uint32_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i + 1);
  return bytes;
}

class DdpLength : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(AllPaddings, DdpLength, testing::Values(0u, 1u, 2u, 3u, 4u, 5u, 999u, 1000u));

TEST_P(DdpLength, WholeFormCarriesTheBytes) {
  const Buffer data = payload(GetParam());
  const Buffer bytes = encode(Upload{7, DdpItem::of(data), 8});
  ASSERT_EQ(bytes.size(), 12 + padded_bytes(GetParam()));
  Decoder decoder(bytes);
  Upload back;
  decoder(back);
  ASSERT_TRUE(decoder.at_end());
  EXPECT_EQ(back.after, 8u);
  EXPECT_EQ(back.data.length, GetParam());
  EXPECT_EQ(back.data.position, 8u);
  EXPECT_TRUE(
      std::equal(data.begin(), data.end(), back.data.inline_bytes.begin(), back.data.inline_bytes.end()));
  EXPECT_FALSE(decoder.reduced());
}

TEST_P(DdpLength, ReducedFormLeavesBytesAndPaddingOut) {
  const Upload upload{7, DdpItem::elsewhere(GetParam()), 8};
  Buffer buffer(100);
  Encoder encoder(buffer, Form::reduced);
  encoder(upload);
  ASSERT_TRUE(encoder.ok());
  EXPECT_EQ(encoder.size(), 12u);
  EXPECT_EQ(encoder.whole_size(), 12 + padded_bytes(GetParam()));
  ASSERT_TRUE(encoder.reduced());
  EXPECT_EQ(encoder.reduced()->position, 8u);
  EXPECT_EQ(encoder.reduced()->length, GetParam());
  EXPECT_EQ(encoded_bytes(upload, Form::reduced), 12u);
  EXPECT_EQ(encoded_bytes(upload), 12 + padded_bytes(GetParam()));

  // By position as a responder reads it, and as the first item as a requester does; with and without padding.
  for (uint32_t position : {8u, position_any}) {
    for (uint32_t came : {GetParam(), static_cast<uint32_t>(padded_bytes(GetParam()))}) {
      Decoder decoder(encoder.written(), OutOfBand{came, position});
      Upload back;
      decoder(back);
      ASSERT_TRUE(decoder.at_end());
      EXPECT_EQ(back.data.length, GetParam());
      EXPECT_EQ(back.data.position, 8u);
      EXPECT_TRUE(back.data.inline_bytes.empty());
      EXPECT_EQ(back.after, 8u);
      ASSERT_TRUE(decoder.reduced());
      EXPECT_EQ(decoder.reduced()->length, GetParam());
      EXPECT_EQ(decoder.whole_position(), 12 + padded_bytes(GetParam()));
    }
  }
}

TEST(Ddp, LengthThatDisagreesIsAFault) {
  Buffer buffer(100);
  Encoder encoder(buffer, Form::reduced);
  encoder(Upload{7, DdpItem::elsewhere(5), 8});
  for (uint32_t came : {0u, 4u, 6u, 7u, 9u, 12u}) {
    Decoder decoder(encoder.written(), OutOfBand{came});
    Upload back;
    decoder(back);
    EXPECT_EQ(decoder.fault(), Fault::mismatch) << came;
    EXPECT_EQ(back.data.length, 0u);
  }
}

TEST(Ddp, LimitHoldsInReducedForm) {
  Buffer buffer(100);
  Encoder encoder(buffer, Form::reduced);
  encoder(Upload{7, DdpItem::elsewhere(1001), 8});
  EXPECT_EQ(encoder.fault(), Fault::limit);
  const Buffer bytes = hex("00000007 000003e9 00000008");
  Decoder decoder(bytes, OutOfBand{1001});
  Upload back;
  decoder(back);
  EXPECT_EQ(decoder.fault(), Fault::limit);
}

TEST(Ddp, WholeFormNeedsTheBytes) {
  Buffer buffer(100);
  Encoder encoder(buffer);
  encoder(Upload{7, DdpItem::elsewhere(5), 8});
  EXPECT_EQ(encoder.fault(), Fault::mismatch);
  Encoder empty(buffer);
  empty(Upload{7, DdpItem::elsewhere(0), 8});
  EXPECT_TRUE(empty.ok());
}

TEST(Ddp, OnlyTheFirstItemIsReduced) {
  const Buffer data = payload(5);
  const Upload first{1, DdpItem::elsewhere(9), 2};
  const Upload second{3, DdpItem::of(data), 4};
  Buffer buffer(100);
  Encoder encoder(buffer, Form::reduced);
  encoder(first, second);
  ASSERT_TRUE(encoder.ok());
  EXPECT_EQ(encoder.size(), 12u + 12 + 8);
  Sizer sizer(Form::reduced);
  sizer(first, second);
  EXPECT_EQ(sizer.size(), encoder.size());

  Decoder decoder(encoder.written(), OutOfBand{9});
  Upload a, b;
  decoder(a, b);
  ASSERT_TRUE(decoder.at_end());
  EXPECT_EQ(a.data.length, 9u);
  EXPECT_EQ(b.data.inline_bytes.size(), 5u);
  EXPECT_EQ(b.data.position, 12u + 12 + 8)
      << "counted in the whole stream: nine bytes and their padding were left out";
}

TEST(Ddp, ItemAtAnotherPositionIsInline) {
  const Buffer data = payload(4);
  const Buffer bytes = encode(Upload{7, DdpItem::of(data), 8});
  Decoder decoder(bytes, OutOfBand{4, 12});
  Upload back;
  decoder(back);
  ASSERT_TRUE(decoder.at_end());
  EXPECT_EQ(back.data.inline_bytes.size(), 4u);
  EXPECT_FALSE(decoder.reduced()) << "the caller sees that the data that came belongs nowhere";
}

TEST(Ddp, TruncatedReducedStreamIsAFault) {
  Buffer buffer(100);
  Encoder encoder(buffer, Form::reduced);
  encoder(Upload{7, DdpItem::elsewhere(5), 8});
  for (uint32_t n = 0; n < encoder.size(); ++n) {
    Decoder decoder(encoder.written().first(n), OutOfBand{5});
    Upload back;
    decoder(back);
    EXPECT_EQ(decoder.fault(), Fault::truncated) << n;
  }
}

TEST(Ddp, RollbackForgetsTheRecord) {
  Buffer buffer(100);
  Encoder encoder(buffer, Form::reduced);
  const Encoder::Mark mark = encoder.mark();
  encoder(Upload{7, DdpItem::elsewhere(5), 8});
  encoder.rollback(mark);
  EXPECT_FALSE(encoder.reduced());
  encoder(uint32_t{0}, Upload{7, DdpItem::elsewhere(6), 8});
  EXPECT_EQ(encoder.reduced()->position, 12u);
}

}  // namespace
}  // namespace nfsrdma::xdr::test
