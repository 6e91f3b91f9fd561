// SPDX-License-Identifier: Apache-2.0
// Printer and Generator.
#include <gtest/gtest.h>

#include "tests/xdr/shapes.hpp"

namespace nfsrdma::xdr::test {
namespace {

TEST(Printer, NamesAndValues) {
  EXPECT_EQ(print(Point{-1, -2, true, {std::byte{0xab}}}), "x=-1 y=-2 lit=true id=ab0000000000");
  Shape shape;
  shape.colour = Colour::blue;
  EXPECT_EQ(print(shape), "colour=blue centre=none");
  shape.centre = Point{};
  EXPECT_EQ(print(shape), "colour=blue centre={x=0 y=0 lit=false id=000000000000}");
}

TEST(Printer, ListsAndOpaques) {
  Drawing drawing;
  const std::array<Point, 2> path{Point{1, 2, false, {}}, Point{3, 4, true, {}}};
  drawing.path = path;
  EXPECT_EQ(print(drawing),
            "key='' handle='' shapes=[] path=[{x=1 y=2 lit=false id=000000000000} {x=3 y=4 lit=true "
            "id=000000000000}] "
            "margins=[0 0 0] words=0");
}

TEST(Printer, HostileTextIsEscapedAndCut) {
  Shape shape;
  shape.colour = Colour::green;
  shape.name = "a\"b\n\x1b\xff\\";
  EXPECT_EQ(print(shape), R"(colour=green name="a\x22b\x0a\x1b\xff\x5c")");
  const std::string longer(500, 'z');
  shape.name = longer;
  const std::string printed = print(shape);
  EXPECT_LT(printed.size(), 200u);
  EXPECT_NE(printed.find("...(500)"), std::string::npos);
}

TEST(Printer, SaysWhereDataIs) {
  const Buffer data(3);
  EXPECT_EQ(print(Upload{1, DdpItem::of(data), 2}), "before=1 data=3 bytes inline after=2");
  EXPECT_EQ(print(Upload{1, DdpItem::elsewhere(3), 2}), "before=1 data=3 bytes by rdma after=2");
}

TEST(Generator, SameSeedSameValues) {
  Generator a(42), b(42), c(43);
  bool differs = false;
  for (int i = 0; i < 20; ++i) {
    Drawing x, y, z;
    a(x);
    b(y);
    c(z);
    EXPECT_EQ(encode(x), encode(y));
    differs = differs || encode(x) != encode(z);
  }
  EXPECT_TRUE(differs);
}

TEST(Generator, ReachesLimitsAndEveryArm) {
  Generator generator(5);
  bool seen_colour[8] = {};
  size_t longest = 0;
  bool empty = false;
  for (int i = 0; i < 500; ++i) {
    Shape shape;
    generator(shape);
    seen_colour[static_cast<uint32_t>(shape.colour) & 7] = true;
    if (shape.colour != Colour::green) continue;
    longest = std::max(longest, shape.name.size());
    empty = empty || shape.name.empty();
  }
  EXPECT_TRUE(seen_colour[1] && seen_colour[2] && seen_colour[7]);
  EXPECT_EQ(longest, 20u);
  EXPECT_TRUE(empty);
}

}  // namespace
}  // namespace nfsrdma::xdr::test
