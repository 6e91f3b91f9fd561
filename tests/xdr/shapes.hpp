// SPDX-License-Identifier: Apache-2.0
// Types that exercise every archive primitive, and small helpers for the tests of this folder.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "xdr/archive.hpp"
#include "xdr/decoder.hpp"
#include "xdr/encoder.hpp"
#include "xdr/generator.hpp"
#include "xdr/printer.hpp"
#include "xdr/sequence.hpp"
#include "xdr/sizer.hpp"

namespace nfsrdma::xdr::test {

using Buffer = std::vector<std::byte>;

enum class Colour : uint32_t { red = 1, green = 2, blue = 7 };
inline const char* to_string(Colour c) {
  return c == Colour::red ? "red" : c == Colour::green ? "green" : "blue";
}

struct Point {
  int32_t x = 0;
  int64_t y = 0;
  bool lit = false;
  std::array<std::byte, 6> id{};
  bool operator==(const Point&) const = default;
};
template <class A>
constexpr void describe(A& ar, Point& v) {
  ar.fields("x y lit id", v.x, v.y, v.lit, v.id);
}

struct Shape {
  Colour colour = Colour::red;
  uint64_t area = 0;            // red
  std::string_view name;        // green
  std::optional<Point> centre;  // blue
};
template <class A>
constexpr void describe(A& ar, Shape& v) {
  ar.discriminant("colour", v.colour, {Colour::red, Colour::green, Colour::blue});
  switch (v.colour) {
    case Colour::red:
      return ar.fields("area", v.area);
    case Colour::green:
      return ar.fields("name", bounded(v.name, 20));
    case Colour::blue:
      return ar.fields("centre", v.centre);
  }
}

struct Drawing {
  std::span<const std::byte> key;
  InlineBytes<16> handle;
  Array<Shape> shapes;
  Chain<Point> path;
  std::array<uint32_t, 3> margins{};
  uint32_t word_count = 0;
  std::array<uint32_t, 4> words{};
};
template <class A>
constexpr void describe(A& ar, Drawing& v) {
  ar.fields("key handle shapes path margins", bounded(v.key, 10), v.handle, bounded(v.shapes, 5),
            bounded(v.path, 6), v.margins);
  ar.count("words", v.word_count, 4);
  for (uint32_t i = 0; i < v.word_count && i < 4; ++i) ar(v.words[i]);
}

struct Upload {
  uint32_t before = 0;
  DdpItem data;
  uint32_t after = 0;
};
template <class A>
constexpr void describe(A& ar, Upload& v) {
  ar.fields("before", v.before);
  ar.ddp("data", v.data, 1000);
  ar.fields("after", v.after);
}

template <class T>
Buffer encode(const T& value, Form form = Form::whole) {
  Buffer buffer(65536);
  Encoder encoder(buffer, form);
  encoder(value);
  if (!encoder.ok()) return {};
  buffer.resize(encoder.size());
  return buffer;
}

inline Buffer hex(std::string_view digits) {
  Buffer out;
  int high = -1;
  for (char c : digits) {
    if (c == ' ') continue;
    const int nibble = c <= '9' ? c - '0' : c - 'a' + 10;
    if (high < 0) {
      high = nibble;
    } else {
      out.push_back(static_cast<std::byte>(high * 16 + nibble));
      high = -1;
    }
  }
  return out;
}

}  // namespace nfsrdma::xdr::test
