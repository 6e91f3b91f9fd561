// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include "base/random.hpp"
#include "xdr/archive.hpp"
#include "xdr/sequence.hpp"

namespace nfsrdma::xdr {

// Fills values with seeded random contents that their descriptions allow: tests and fuzz seeds. Views in the
// values point into the generator's own memory and end with it or with clear(). The same seed gives the same
// values.
class Generator {
 public:
  static constexpr bool writes_value = true;
  explicit Generator(uint64_t seed) : random_(seed) {}

  template <class... Ts>
  void operator()(Ts&&... items) {
    (item(*this, items), ...);
  }
  template <class... Ts>
  void fields(const char*, Ts&&... items) {
    (item(*this, items), ...);
  }
  template <class E>
  void discriminant(const char*, E& v, std::initializer_list<E> legal) {
    v = *(legal.begin() + below(static_cast<uint32_t>(legal.size())));
  }
  template <class E>
  void branch(const char*, E& v) {
    if constexpr (std::is_same_v<E, bool>) {
      v = below(2) != 0;
    } else {
      v = static_cast<E>(small_number());
    }
  }
  void count(const char*, uint32_t& n, uint32_t max) { n = below(max < 8 ? max + 1 : 9); }
  void ddp(const char*, DdpItem& v, uint32_t max) { v = DdpItem::of(bytes(length(max))); }
  void fail(Fault) {}

  uint64_t next() { return random_.next(); }
  // 0 <= n < limit; limit > 0.
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_.below(limit)); }
  // Random bytes in the generator's memory.
  std::span<const std::byte> bytes(uint32_t n);
  void clear() { arena_.clear(); }

  // Primitives that item() calls.
  void word(uint32_t& v);
  void flag(uint32_t& v) { v = below(2); }
  void presence(bool& v) { v = below(2) != 0; }
  void hyper(uint64_t& v);
  void fixed(std::byte* out, size_t n);
  void inline_bytes(uint32_t& size, std::byte* out, uint32_t max);
  void opaque(std::span<const std::byte>& v, uint32_t max) { v = bytes(length(max)); }
  void text(std::string_view& v, uint32_t max);
  template <class T, ListForm F>
  void sequence(List<T, F>& list, uint32_t max) {
    static_assert(std::is_trivially_destructible_v<T>,
                  "the generator's memory is dropped without destructors");
    const uint32_t n = below(max < 4 ? max + 1 : 5);
    T* items = ::new (allocate(sizeof(T) * n)) T[n]{};
    for (uint32_t i = 0; i < n; ++i) item(*this, items[i]);
    list = List<T, F>(std::span<const T>(items, n));
  }

 private:
  void* allocate(size_t n);
  uint32_t length(uint32_t max);
  uint32_t small_number();

  base::SeededRandom random_;
  std::vector<std::unique_ptr<std::max_align_t[]>> arena_;
};

}  // namespace nfsrdma::xdr
