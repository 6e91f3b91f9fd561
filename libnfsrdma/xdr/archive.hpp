// SPDX-License-Identifier: Apache-2.0
// What every XDR archive (RFC 4506) shares. A protocol type is described once, by a function found by ADL:
//
//   template <class A>
//   constexpr void describe(A& ar, ReadArgs& v) {
//     ar.fields("stateid offset count", v.stateid, v.offset, v.count);
//   }
//
// and Encoder, Decoder, Sizer, Printer and Generator all follow that description. Besides fields() an archive
// has
//   ar(a, b, c)                       the same without names for the trace
//   bounded(view, max)                a variable-length item and its limit, as an argument of fields()
//   ar.discriminant(name, v, {...})   a union's switch: only the listed values are legal
//   ar.branch(name, v)                a union's switch with a default arm: every value is legal
//   ar.count(name, n, max)            a count word whose elements the description handles itself
//   ar.ddp(name, item, max)           an opaque that RPC-over-RDMA may move apart from the stream (RFC
//   8166, 3.4) ar.fail(fault)                    refuse the value
// Archives are single threaded and never own the bytes they work on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/bytes.hpp"

namespace nfsrdma::xdr {

// The first thing that went wrong in an archive; it stays, and everything after it is a no-op.
enum class Fault : uint8_t {
  none,
  overflow,   // Encoder: the buffer is full
  truncated,  // Decoder: the bytes end inside an item
  limit,      // a variable-length item is longer than its limit
  value,      // a boolean or a union's switch has a value that the description does not allow
  mismatch,   // a length word disagrees with the length that went by RDMA, or a whole form lacks its bytes
};
const char* to_string(Fault fault);

// whole: every byte is in the stream. reduced: the first ddp() item is left out with its padding and goes by
// RDMA.
enum class Form : uint8_t { whole, reduced };

inline constexpr uint32_t position_any = UINT32_MAX;

// An opaque that may travel by RDMA. length always counts; inline_bytes is empty when the bytes are elsewhere
// (in memory that only a Region can reach, or already placed by the peer). position is where the bytes start,
// or would start, in the whole stream, counted from the archive's origin; decoders set it, encoders ignore it
// and report their own.
struct DdpItem {
  uint32_t position = 0;
  uint32_t length = 0;
  std::span<const std::byte> inline_bytes{};

  static constexpr DdpItem of(std::span<const std::byte> bytes) {
    return DdpItem{0, static_cast<uint32_t>(bytes.size()), bytes};
  }
  static constexpr DdpItem elsewhere(uint32_t length_bytes) { return DdpItem{0, length_bytes, {}}; }
};

// Where a reduced stream left bytes out.
struct DdpRecord {
  uint32_t position;  // in the whole stream, from the archive's origin
  uint32_t length;    // bytes, without padding
};

// A variable-length item together with its limit: bytes for opaque and string, elements for sequences.
template <class T>
struct Bounded {
  T& value;
  uint32_t max;
};
template <class T>
constexpr Bounded<T> bounded(T& value, uint32_t max) {
  return Bounded<T>{value, max};
}

// A short variable-length opaque kept by value (file handles).
template <uint32_t Max>
struct InlineBytes {
  uint32_t size = 0;
  std::array<std::byte, Max> bytes;

  constexpr std::span<const std::byte> view() const { return {bytes.data(), size}; }
};

constexpr uint32_t pad_bytes(uint32_t length) { return (0u - length) & 3u; }
constexpr uint64_t padded_bytes(uint64_t length) { return (length + 3) & ~uint64_t{3}; }

inline void store_u32(std::byte* p, uint32_t v) { base::store_be(p, v); }
inline void store_u64(std::byte* p, uint64_t v) { base::store_be(p, v); }
inline uint32_t load_u32(const std::byte* p) { return base::load_be<uint32_t>(p); }
inline uint64_t load_u64(const std::byte* p) { return base::load_be<uint64_t>(p); }

template <class T>
inline constexpr bool is_word_v = std::is_same_v<T, uint32_t> || std::is_same_v<T, int32_t> ||
                                  (std::is_enum_v<T> && sizeof(T) == sizeof(uint32_t));
template <class T>
inline constexpr bool is_hyper_v = std::is_same_v<T, uint64_t> || std::is_same_v<T, int64_t>;

template <class T>
struct FixedArray : std::false_type {};
template <class T, size_t N>
struct FixedArray<std::array<T, N>> : std::true_type {};
template <class T>
struct ElementOf {
  using type = void;
};
template <class T, size_t N>
struct ElementOf<std::array<T, N>> {
  using type = T;
};
template <class T>
struct OptionalItem : std::false_type {};
template <class T>
struct OptionalItem<std::optional<T>> : std::true_type {};
template <class T>
struct BoundedItem : std::false_type {};
template <class T>
struct BoundedItem<Bounded<T>> : std::true_type {};
template <class T>
struct InlineItem : std::false_type {};
template <uint32_t Max>
struct InlineItem<InlineBytes<Max>> : std::true_type {};

template <class A>
constexpr void item_bool(A& ar, bool& v) {
  uint32_t word = 0;
  if constexpr (!A::writes_value) word = v ? 1 : 0;
  ar.flag(word);
  if constexpr (A::writes_value) v = word != 0;
}

template <class A, class T>
constexpr void item_optional(A& ar, std::optional<T>& v) {
  if constexpr (A::writes_value) {
    bool present = false;
    ar.presence(present);
    if (present) {
      item(ar, v.emplace());
    } else {
      v.reset();
    }
  } else {
    bool present = v.has_value();
    ar.presence(present);
    if (present) item(ar, *v);
  }
}

// One item of any type that XDR knows, through the archive's primitives:
//   word(uint32_t&) hyper(uint64_t&) flag(uint32_t&) presence(bool&) fixed(byte*, n) inline_bytes(size, data,
//   max) opaque(span&, max) text(string_view&, max) sequence(list&, max)
// Archives with writes_value set (Decoder, Generator) write into v; the others never modify it, which is why
// a constant may be passed to them.
template <class A, class T>
constexpr void item(A& ar, T&& reference) {
  using V = std::remove_cvref_t<T>;
  static_assert(!A::writes_value || BoundedItem<V>::value || !std::is_const_v<std::remove_reference_t<T>>,
                "this archive writes into the value");
  V& v = const_cast<V&>(reference);
  if constexpr (std::is_same_v<V, bool>) {
    item_bool(ar, v);
  } else if constexpr (is_word_v<V>) {
    uint32_t word = 0;
    if constexpr (!A::writes_value) word = static_cast<uint32_t>(v);
    ar.word(word);
    if constexpr (A::writes_value) v = static_cast<V>(word);
  } else if constexpr (is_hyper_v<V>) {
    uint64_t hyper = 0;
    if constexpr (!A::writes_value) hyper = static_cast<uint64_t>(v);
    ar.hyper(hyper);
    if constexpr (A::writes_value) v = static_cast<V>(hyper);
  } else if constexpr (FixedArray<V>::value) {
    if constexpr (std::is_same_v<typename V::value_type, std::byte>) {
      ar.fixed(v.data(), v.size());
    } else {
      for (auto& element : v) item(ar, element);
    }
  } else if constexpr (OptionalItem<V>::value) {
    item_optional(ar, v);
  } else if constexpr (InlineItem<V>::value) {
    ar.inline_bytes(v.size, v.bytes.data(), static_cast<uint32_t>(v.bytes.size()));
  } else if constexpr (BoundedItem<V>::value) {
    using Inner = std::remove_cvref_t<decltype(v.value)>;
    if constexpr (std::is_same_v<Inner, std::span<const std::byte>>) {
      ar.opaque(v.value, v.max);
    } else if constexpr (std::is_same_v<Inner, std::string_view>) {
      ar.text(v.value, v.max);
    } else {
      ar.sequence(v.value, v.max);
    }
  } else {
    describe(ar, v);
  }
}

// Counts the bytes of a description whose size never varies; evaluated at compile time only.
struct FixedSizer {
  static constexpr bool writes_value = false;
  size_t bytes = 0;
  bool variable = false;

  template <class... Ts>
  constexpr void operator()(Ts&&... items) {
    (item(*this, items), ...);
  }
  template <class... Ts>
  constexpr void fields(const char*, Ts&&... items) {
    (item(*this, items), ...);
  }
  template <class E>
  constexpr void discriminant(const char*, E&, std::initializer_list<E>) {
    variable = true;
  }
  template <class E>
  constexpr void branch(const char*, E&) {
    variable = true;
  }
  constexpr void count(const char*, uint32_t&, uint32_t) { variable = true; }
  constexpr void ddp(const char*, DdpItem&, uint32_t) { variable = true; }
  constexpr void fail(Fault) { variable = true; }
  constexpr void word(uint32_t) { bytes += 4; }
  constexpr void flag(uint32_t) { bytes += 4; }
  constexpr void hyper(uint64_t) { bytes += 8; }
  constexpr void presence(bool) { variable = true; }
  constexpr void fixed(const std::byte*, size_t n) { bytes += padded_bytes(n); }
  constexpr void inline_bytes(uint32_t, const std::byte*, uint32_t) { variable = true; }
  template <class T>
  constexpr void opaque(T&, uint32_t) {
    variable = true;
  }
  template <class T>
  constexpr void text(T&, uint32_t) {
    variable = true;
  }
  template <class T>
  constexpr void sequence(T&, uint32_t) {
    variable = true;
  }
};

inline constexpr size_t size_varies = SIZE_MAX;

template <class T>
struct FixedBytes {
  static consteval size_t measure() {
    FixedSizer sizer;
    T value{};
    item(sizer, value);
    return sizer.variable ? size_varies : sizer.bytes;
  }
  static constexpr size_t value = measure();
};
template <class T>
struct FixedBytes<Bounded<T>> {
  static constexpr size_t value = size_varies;
};

// Encoded size of T when it is the same for every value, else size_varies.
template <class T>
inline constexpr size_t fixed_bytes_v = FixedBytes<std::remove_cvref_t<T>>::value;
template <class... Ts>
inline constexpr bool all_fixed_v = ((fixed_bytes_v<Ts> != size_varies) && ...);

}  // namespace nfsrdma::xdr
