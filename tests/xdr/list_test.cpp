// SPDX-License-Identifier: Apache-2.0
// Lists: views of items and of encoded bytes must be the same thing to everyone.
#include <gtest/gtest.h>

#include "tests/xdr/shapes.hpp"

namespace nfsrdma::xdr::test {
namespace {

template <class L>
struct Holder {
  L list;
  uint32_t after = 0;
};
template <class A, class L>
constexpr void describe(A& ar, Holder<L>& v) {
  ar.fields("list after", bounded(v.list, 3), v.after);
}

const std::array<uint32_t, 3> numbers{5, 6, 7};

TEST(List, CountedForm) {
  EXPECT_EQ(encode(Holder<Array<uint32_t>>{numbers, 9}), hex("00000003 00000005 00000006 00000007 00000009"));
  EXPECT_EQ(encode(Holder<Array<uint32_t>>{{}, 9}), hex("00000000 00000009"));
}

TEST(List, LinkedForm) {
  EXPECT_EQ(encode(Holder<Chain<uint32_t>>{numbers, 9}),
            hex("00000001 00000005 00000001 00000006 00000001 00000007 00000000 00000009"));
  EXPECT_EQ(encode(Holder<Chain<uint32_t>>{{}, 9}), hex("00000000 00000009"));
}

template <class L>
void expect_numbers(const Buffer& bytes) {
  Decoder decoder(bytes);
  Holder<L> back;
  decoder(back);
  ASSERT_TRUE(decoder.at_end());
  EXPECT_EQ(back.list.size(), 3u);
  EXPECT_TRUE(back.list.is_encoded());
  std::vector<uint32_t> seen;
  for (uint32_t n : back.list) seen.push_back(n);
  EXPECT_EQ(seen, std::vector<uint32_t>(numbers.begin(), numbers.end()));
  EXPECT_EQ(encode(back), bytes);
  EXPECT_EQ(encoded_bytes(back), bytes.size());
}

TEST(List, DecodedListsIterateAndEncodeAgain) {
  expect_numbers<Array<uint32_t>>(encode(Holder<Array<uint32_t>>{numbers, 9}));
  expect_numbers<Chain<uint32_t>>(encode(Holder<Chain<uint32_t>>{numbers, 9}));
}

TEST(List, EncodedPairsCanBeHandedOver) {
  Buffer scratch(100);
  Encoder encoder(scratch);
  encoder(uint32_t{1}, numbers[0], uint32_t{1}, numbers[1]);
  const Holder<Chain<uint32_t>> holder{Chain<uint32_t>::from_encoded(encoder.written(), 2), 9};
  EXPECT_EQ(encode(holder), hex("00000001 00000005 00000001 00000006 00000000 00000009"));
}

TEST(List, LimitHoldsBothWays) {
  const std::array<uint32_t, 4> four{};
  EXPECT_TRUE(encode(Holder<Array<uint32_t>>{four, 9}).empty());
  EXPECT_TRUE(encode(Holder<Chain<uint32_t>>{four, 9}).empty());
  const Buffer counted = hex("00000004 00000000 00000000 00000000 00000000 00000009");
  Decoder a(counted);
  Holder<Array<uint32_t>> array;
  a(array);
  EXPECT_EQ(a.fault(), Fault::limit);
  const Buffer linked =
      hex("00000001 00000000 00000001 00000000 00000001 00000000 00000001 00000000 00000000");
  Decoder b(linked);
  Holder<Chain<uint32_t>> chain;
  b(chain);
  EXPECT_EQ(b.fault(), Fault::limit);
  EXPECT_TRUE(chain.list.empty());
}

TEST(List, BadItemFailsTheList) {
  const Buffer bytes = hex("00000002 00000002 00000001 61000000 00000009 00000000");
  Decoder decoder(bytes);
  Array<Shape> list;
  decoder(bounded(list, 3));
  EXPECT_EQ(decoder.fault(), Fault::value);
  EXPECT_TRUE(list.empty());
}

TEST(List, LinkWordsAreZeroOrOne) {
  const Buffer bytes = hex("00000002 00000005 00000000 00000009");
  Decoder decoder(bytes);
  Holder<Chain<uint32_t>> back;
  decoder(back);
  EXPECT_EQ(decoder.fault(), Fault::value);
}

TEST(List, NestedListsIterate) {
  Generator generator(9);
  for (int round = 0; round < 100; ++round) {
    Drawing drawing;
    generator(drawing);
    const Buffer bytes = encode(drawing);
    Decoder decoder(bytes);
    Drawing back;
    decoder(back);
    ASSERT_EQ(back.shapes.size(), drawing.shapes.size());
    auto original = drawing.shapes.begin();
    for (const Shape& shape : back.shapes) {
      ASSERT_EQ(encode(shape), encode(*original));
      ++original;
    }
  }
}

}  // namespace
}  // namespace nfsrdma::xdr::test
