// SPDX-License-Identifier: Apache-2.0
// Bytes on the wire against RFC 4506, limits in both directions, truncation and sticky faults.
#include <gtest/gtest.h>

#include "tests/xdr/shapes.hpp"

namespace nfsrdma::xdr::test {
namespace {

const Point point{
    -2, 5, true, {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}, std::byte{6}}};

TEST(Encoding, FixedStructureIsBigEndianAndPadded) {
  static_assert(fixed_bytes_v<Point> == 4 + 8 + 4 + 8);
  EXPECT_EQ(encode(point), hex("fffffffe 0000000000000005 00000001 010203040506 0000"));
}

TEST(Encoding, UnionOptionalAndText) {
  static_assert(fixed_bytes_v<Shape> == size_varies);
  Shape shape;
  shape.colour = Colour::green;
  shape.name = "oval";
  EXPECT_EQ(encode(shape), hex("00000002 00000004 6f76616c"));
  shape.name = "a";
  EXPECT_EQ(encode(shape), hex("00000002 00000001 61000000"));
  shape.name = "";
  EXPECT_EQ(encode(shape), hex("00000002 00000000"));
  shape.colour = Colour::blue;
  EXPECT_EQ(encode(shape), hex("00000007 00000000"));
  shape.centre = point;
  EXPECT_EQ(encode(shape), hex("00000007 00000001 fffffffe 0000000000000005 00000001 010203040506 0000"));
}

TEST(Encoding, PaddingIsZeroWhateverTheBufferHeld) {
  Buffer buffer(64, std::byte{0xee});
  Encoder encoder(buffer);
  const std::string_view text = "abcde";
  const Buffer key = hex("01");
  const std::span<const std::byte> view = key;
  encoder(bounded(text, 5), bounded(view, 1), point);
  ASSERT_TRUE(encoder.ok());
  buffer.resize(encoder.size());
  EXPECT_EQ(buffer, hex("00000005 6162636465000000 00000001 01000000"
                        "fffffffe 0000000000000005 00000001 010203040506 0000"));
}

TEST(Encoding, FullBufferIsAFaultThatStays) {
  const Buffer whole = encode(point);
  for (size_t room = 0; room < whole.size(); ++room) {
    Buffer buffer(room);
    Encoder encoder(buffer);
    encoder(point);
    EXPECT_EQ(encoder.fault(), Fault::overflow);
    EXPECT_EQ(encoder.size(), 0u) << "a fixed structure is written whole or not at all";
    encoder(uint32_t{1});
    EXPECT_EQ(encoder.size(), 0u) << "nothing follows a fault";
  }
}

TEST(Encoding, OverflowAtEveryRoomOfAVariableType) {
  Generator generator(3);
  for (int round = 0; round < 20; ++round) {
    Drawing drawing;
    generator(drawing);
    const Buffer whole = encode(drawing);
    for (size_t room = 0; room < whole.size(); ++room) {
      Buffer buffer(room + 1, std::byte{0x5a});
      Encoder encoder(std::span<std::byte>(buffer).first(room));
      encoder(drawing);
      ASSERT_EQ(encoder.fault(), Fault::overflow) << room << " of " << whole.size();
      ASSERT_EQ(buffer[room], std::byte{0x5a});
    }
  }
}

TEST(Encoding, LimitsHold) {
  Shape shape;
  shape.colour = Colour::green;
  const std::string text(21, 'x');
  shape.name = std::string_view(text).substr(0, 20);
  EXPECT_FALSE(encode(shape).empty());
  shape.name = text;
  EXPECT_TRUE(encode(shape).empty());

  Buffer buffer(1000);
  const std::array<Shape, 6> shapes{};
  Drawing drawing;
  drawing.shapes = shapes;
  Encoder encoder(buffer);
  encoder(drawing);
  EXPECT_EQ(encoder.fault(), Fault::limit);

  drawing.shapes = {};
  drawing.word_count = 5;
  Encoder second(buffer);
  second(drawing);
  EXPECT_EQ(second.fault(), Fault::limit);

  InlineBytes<4> handle{5, {}};
  Encoder third(buffer);
  third(handle);
  EXPECT_EQ(third.fault(), Fault::limit);
}

TEST(Encoding, IllegalDiscriminantIsAFault) {
  Shape shape;
  shape.colour = static_cast<Colour>(3);
  Buffer buffer(100);
  Encoder encoder(buffer);
  encoder(shape);
  EXPECT_EQ(encoder.fault(), Fault::value);
}

TEST(Encoding, RollbackForgetsWritesAndFaults) {
  Buffer buffer(16);
  Encoder encoder(buffer);
  encoder(uint32_t{1});
  const Encoder::Mark mark = encoder.mark();
  encoder(uint64_t{2}, uint64_t{3});
  EXPECT_FALSE(encoder.ok());
  encoder.rollback(mark);
  EXPECT_TRUE(encoder.ok());
  encoder(uint64_t{4}, uint32_t{5});
  EXPECT_TRUE(encoder.ok());
  EXPECT_EQ(encoder.room_bytes(), 0u);
  EXPECT_EQ(buffer, hex("00000001 0000000000000004 00000005"));
  encoder.patch_u32(12, 9);
  EXPECT_EQ(load_u32(buffer.data() + 12), 9u);
}

TEST(Decoding, ReadsWhatWasWritten) {
  const Buffer bytes = encode(point);
  Decoder decoder(bytes);
  Point back;
  decoder(back);
  EXPECT_TRUE(decoder.at_end());
  EXPECT_EQ(back, point);
}

TEST(Decoding, ViewsPointIntoTheBuffer) {
  const Buffer bytes = hex("00000002 00000003 61626300");
  Decoder decoder(bytes);
  Shape shape;
  decoder(shape);
  ASSERT_TRUE(decoder.at_end());
  EXPECT_EQ(shape.name, "abc");
  EXPECT_EQ(static_cast<const void*>(shape.name.data()), bytes.data() + 8);
}

TEST(Decoding, EveryTruncationIsAFault) {
  Generator generator(4);
  for (int round = 0; round < 50; ++round) {
    Drawing drawing;
    generator(drawing);
    const Buffer whole = encode(drawing);
    for (size_t n = 0; n < whole.size(); ++n) {
      const Buffer cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
      Decoder decoder(cut);
      Drawing back;
      decoder(back);
      ASSERT_EQ(decoder.fault(), Fault::truncated) << n << " of " << whole.size();
    }
  }
}

TEST(Decoding, FaultStaysAndLeavesEmptyValues) {
  const Buffer bytes = hex("00000002 000000ff 61626300 00000005");
  Decoder decoder(bytes);
  Shape shape;
  decoder(shape);
  EXPECT_EQ(decoder.fault(), Fault::limit);
  EXPECT_TRUE(shape.name.empty());
  uint32_t word = 77;
  Point back = point;
  decoder(word);
  decoder(back);
  EXPECT_EQ(word, 0u);
  EXPECT_EQ(back, Point{});
  EXPECT_EQ(decoder.fault(), Fault::limit) << "the first fault is kept";
  EXPECT_TRUE(decoder.rest().empty());
}

TEST(Decoding, LimitsHold) {
  const auto fault_of = [](const Buffer& bytes, auto value) {
    Decoder decoder(bytes);
    decoder(value);
    return decoder.fault();
  };
  EXPECT_EQ(fault_of(hex("00000002 00000015 6161616161616161616161616161616161616161 61000000"), Shape{}),
            Fault::limit);
  EXPECT_EQ(fault_of(hex("0000000b"), Drawing{}), Fault::limit) << "key of 11 bytes";
  EXPECT_EQ(fault_of(hex("00000000 00000011"), Drawing{}), Fault::limit) << "handle of 17";
  EXPECT_EQ(fault_of(hex("00000000 00000000 00000006"), Drawing{}), Fault::limit) << "six shapes";
  EXPECT_EQ(fault_of(hex("00000000 00000000 ffffffff"), Drawing{}), Fault::limit);
  EXPECT_EQ(
      fault_of(hex("00000000 00000000 00000000 00000000 00000001 00000002 00000003 00000005"), Drawing{}),
      Fault::limit)
      << "five words";
  EXPECT_EQ(fault_of(hex("ffffffff"), Upload{}), Fault::truncated);
  EXPECT_EQ(fault_of(hex("00000000 000003e9"), Upload{}), Fault::limit);
}

TEST(Decoding, BooleansAreZeroOrOne) {
  for (uint32_t value : {0u, 1u, 2u, 0x01000000u, UINT32_MAX}) {
    Buffer bytes = encode(point);
    store_u32(bytes.data() + 12, value);
    Decoder fast(bytes);
    Point back;
    fast(back);
    EXPECT_EQ(fast.ok(), value <= 1) << value;

    Buffer word(8);
    store_u32(word.data(), value);
    Decoder slow(std::span<const std::byte>(word).first(4));
    std::optional<bool> none;
    slow(none);
    EXPECT_EQ(slow.fault(), value == 0 ? Fault::none : value == 1 ? Fault::truncated : Fault::value) << value;
  }
}

TEST(Decoding, IllegalDiscriminantLeavesALegalOne) {
  const Buffer bytes = hex("00000003 0000000000000001");
  Decoder decoder(bytes);
  Shape shape;
  decoder(shape);
  EXPECT_EQ(decoder.fault(), Fault::value);
  EXPECT_EQ(shape.colour, Colour::red);
}

TEST(Decoding, TakeAndRest) {
  const Buffer bytes = hex("00000001 aabbcc");
  Decoder decoder(bytes);
  uint32_t word = 0;
  decoder(word);
  EXPECT_EQ(decoder.offset(), 4u);
  EXPECT_EQ(decoder.remaining(), 3u);
  EXPECT_EQ(decoder.take(2).size(), 2u);
  EXPECT_EQ(decoder.rest().size(), 1u);
  EXPECT_TRUE(decoder.take(2).empty());
  EXPECT_EQ(decoder.fault(), Fault::truncated);
}

TEST(Archives, AgreeOnEveryGeneratedValue) {
  Generator generator(1);
  for (int round = 0; round < 500; ++round) {
    Drawing drawing;
    generator(drawing);
    const Buffer bytes = encode(drawing);
    ASSERT_FALSE(bytes.empty());
    ASSERT_EQ(encoded_bytes(drawing), bytes.size());
    Decoder decoder(bytes);
    Drawing back;
    decoder(back);
    ASSERT_TRUE(decoder.at_end());
    ASSERT_EQ(encode(back), bytes);
    ASSERT_EQ(encoded_bytes(back), bytes.size());
    ASSERT_EQ(print(back), print(drawing));
    generator.clear();
  }
}

}  // namespace
}  // namespace nfsrdma::xdr::test
