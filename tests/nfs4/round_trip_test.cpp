// SPDX-License-Identifier: Apache-2.0
// One loop over every described type: encode, decode, encode again; sizes; truncation; hostile bytes.
#include <gtest/gtest.h>

#include "tests/nfs4/all_types.hpp"

namespace nfsrdma::nfs4::test {
namespace {

template <class T>
void round_trip(xdr::Generator& generator) {
  for (int round = 0; round < 40; ++round) {
    T value{};
    generate(generator, value);
    const Buffer bytes = encode(value);
    ASSERT_EQ(xdr::encoded_bytes(value), bytes.size());
    if constexpr (xdr::fixed_bytes_v<T> != xdr::size_varies) {
      ASSERT_EQ(xdr::fixed_bytes_v<T>, bytes.size());
    }
    xdr::Decoder decoder(bytes);
    T back{};
    decoder(back);
    ASSERT_TRUE(decoder.at_end()) << xdr::to_string(decoder.fault());
    ASSERT_EQ(encode(back), bytes);
    ASSERT_EQ(xdr::print(back), xdr::print(value));
    generator.clear();
  }
}

TEST(EveryType, RoundTrips) {
  xdr::Generator generator(1);
  for_each_type([&]<class T>() {
    SCOPED_TRACE(type_name<T>());
    round_trip<T>(generator);
  });
}

TEST(EveryType, FailsWhenTruncatedAtAnyByte) {
  xdr::Generator generator(2);
  for_each_type([&]<class T>() {
    SCOPED_TRACE(type_name<T>());
    for (int round = 0; round < 4; ++round) {
      T value{};
      generate(generator, value);
      const Buffer bytes = encode(value);
      const size_t step = 1 + bytes.size() / 2000;
      for (size_t n = 0; n < bytes.size(); n += step) {
        const Buffer cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
        xdr::Decoder decoder(cut);
        T back{};
        decoder(back);
        ASSERT_EQ(decoder.fault(), xdr::Fault::truncated) << n << " of " << bytes.size();
      }
      generator.clear();
    }
  });
}

TEST(EveryType, FailsWhenTheBufferIsFullAtAnyByte) {
  xdr::Generator generator(3);
  for_each_type([&]<class T>() {
    SCOPED_TRACE(type_name<T>());
    T value{};
    generate(generator, value);
    const Buffer bytes = encode(value);
    const size_t step = 1 + bytes.size() / 2000;
    for (size_t room = 0; room < bytes.size(); room += step) {
      Buffer buffer(room);
      xdr::Encoder encoder(buffer);
      encoder(value);
      ASSERT_EQ(encoder.fault(), xdr::Fault::overflow) << room << " of " << bytes.size();
    }
    generator.clear();
  });
}

// Whatever the bytes are, decoding stays inside them, and what it accepts is legal to encode.
TEST(EveryType, SurvivesHostileBytes) {
  xdr::Generator generator(4);
  for_each_type([&]<class T>() {
    SCOPED_TRACE(type_name<T>());
    for (int round = 0; round < 200; ++round) {
      T value{};
      generate(generator, value);
      Buffer bytes = encode(value);
      if (bytes.empty()) break;
      for (uint32_t hits = 1 + generator.below(4); hits > 0; --hits) {
        bytes[generator.below(static_cast<uint32_t>(bytes.size()))] ^=
            static_cast<std::byte>(1 + generator.below(255));
      }
      bytes.resize(bytes.size() - generator.below(2) * generator.below(static_cast<uint32_t>(bytes.size())));
      xdr::Decoder decoder(bytes);
      T back{};
      decoder(back);
      if (decoder.ok()) {
        ASSERT_EQ(encode(back).size(), decoder.offset());
      }
      xdr::print(back);
      generator.clear();
    }
  });
}

TEST(EveryType, FixedSizesAreThoseOfTheSpecification) {
  static_assert(xdr::fixed_bytes_v<Stateid> == 16);
  static_assert(xdr::fixed_bytes_v<SequenceArgs> == 32);
  static_assert(xdr::fixed_bytes_v<SequenceResult> == 36);
  static_assert(xdr::fixed_bytes_v<ReadArgs> == 28);
  static_assert(xdr::fixed_bytes_v<WriteResult> == 16);
  static_assert(xdr::fixed_bytes_v<CommitArgs> == 12);
  static_assert(xdr::fixed_bytes_v<RenameResult> == 40);
  static_assert(xdr::fixed_bytes_v<WriteArgs> == xdr::size_varies);
  static_assert(xdr::fixed_bytes_v<OpenArgs> == xdr::size_varies);
  static_assert(xdr::fixed_bytes_v<Outcome<SequenceResult>> == xdr::size_varies);
}

TEST(Types, FileHandleComparesItsBytesOnly) {
  const Buffer long_bytes(200, std::byte{7});
  FileHandle a(ByteView(long_bytes).first(20)), b(ByteView(long_bytes).first(20)),
      c(ByteView(long_bytes).first(21));
  b.data.bytes[60] = std::byte{99};
  EXPECT_EQ(a, b);
  EXPECT_EQ(std::hash<FileHandle>{}(a), std::hash<FileHandle>{}(b));
  EXPECT_NE(a, c);
  EXPECT_LT(a, c);
  EXPECT_EQ(FileHandle(long_bytes).bytes().size(), file_handle_bytes_max);
  EXPECT_TRUE(FileHandle().empty());
}

TEST(Types, BitmapKeepsItsWordCount) {
  const Buffer bytes = encode(std::array<uint32_t, 4>{3, 0x10, 0, 0});
  xdr::Decoder decoder(bytes);
  Bitmap bitmap;
  decoder(bitmap);
  ASSERT_TRUE(decoder.at_end());
  EXPECT_EQ(bitmap.count, 3u);
  EXPECT_EQ(bitmap, Bitmap{4});
  EXPECT_EQ(encode(bitmap), bytes);
  bitmap.trim();
  EXPECT_EQ(bitmap.count, 1u);
}

TEST(Types, BitmapSetOperations) {
  const Bitmap a{1, 33, 70}, b{33, 70, 100};
  EXPECT_EQ(a & b, (Bitmap{33, 70}));
  EXPECT_EQ(a | b, (Bitmap{1, 33, 70, 100}));
  EXPECT_EQ(a - b, Bitmap{1});
  EXPECT_TRUE(a.test(70));
  EXPECT_FALSE(a.test(71));
  EXPECT_FALSE(a.test(100000));
  Bitmap c = a;
  c.set(100000);
  EXPECT_EQ(c, a);
  c.clear(1);
  EXPECT_FALSE(c.test(1));
  EXPECT_FALSE(c.none());
  EXPECT_TRUE((c - a).none());
}

TEST(Types, SpecialStateids) {
  EXPECT_EQ(encode(bypass_stateid), Buffer(16, std::byte{0xff}));
  EXPECT_EQ(encode(anonymous_stateid), Buffer(16, std::byte{0}));
  const Stateid held{7, {std::byte{1}}};
  EXPECT_TRUE(held.same_state(held.newest()));
  EXPECT_EQ(held.newest().seqid, 0u);
}

TEST(Types, NamesOfNumbers) {
  EXPECT_STREQ(to_string(Op::read), "READ");
  EXPECT_STREQ(to_string(Op::removexattr), "REMOVEXATTR");
  EXPECT_STREQ(to_string(Op::illegal), "ILLEGAL");
  EXPECT_STREQ(to_string(static_cast<Op>(2)), "UNKNOWN_OP");
  EXPECT_STREQ(to_string(CbOp::recall), "CB_RECALL");
  EXPECT_STREQ(to_string(Status::ok), "OK");
  EXPECT_STREQ(to_string(Status::conn_not_bound_to_session), "CONN_NOT_BOUND_TO_SESSION");
  EXPECT_STREQ(to_string(static_cast<Status>(10073)), "UNKNOWN");
  EXPECT_STREQ(to_string(static_cast<Status>(UINT32_MAX)), "UNKNOWN");
}

}  // namespace
}  // namespace nfsrdma::nfs4::test
