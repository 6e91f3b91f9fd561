// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "xdr/archive.hpp"

namespace nfsrdma::xdr {

enum class ListForm : uint8_t;
template <class T, ListForm FormValue>
class List;

// Loads from memory whose length was already checked: the straight-line half of Decoder.
class RawDecoder {
 public:
  static constexpr bool writes_value = true;
  explicit RawDecoder(const std::byte* at) : at_(at) {}

  template <class... Ts>
  void operator()(Ts&&... items) {
    (item(*this, items), ...);
  }
  template <class... Ts>
  void fields(const char*, Ts&&... items) {
    (item(*this, items), ...);
  }
  void word(uint32_t& v) {
    v = load_u32(at_);
    at_ += 4;
  }
  void flag(uint32_t& v) {
    word(v);
    flags_ |= v;
  }
  void hyper(uint64_t& v) {
    v = load_u64(at_);
    at_ += 8;
  }
  void fixed(std::byte* bytes, size_t n) {
    std::memcpy(bytes, at_, n);
    at_ += padded_bytes(n);
  }
  bool booleans_ok() const { return flags_ <= 1; }

 private:
  const std::byte* at_;
  uint32_t flags_ = 0;
};

// What a reduced stream's reader knows about the item that came by RDMA.
struct OutOfBand {
  // Bytes that came. A length word smaller by the item's padding only is accepted: peers may send the padding
  // too.
  uint32_t length = 0;
  // In the whole stream from the decoder's origin (a read chunk's position), or position_any: the first ddp()
  // item (a write chunk, whose position only the responder knows).
  uint32_t position = position_any;
};

// Reads values from the caller's bytes. Variable-length items become views into those bytes, which must
// outlive them. The first failure is kept in fault(); after it every read leaves zero, empty or false. Never
// reads outside its bytes, whatever they hold.
class Decoder {
 public:
  static constexpr bool writes_value = true;

  Decoder() : Decoder(std::span<const std::byte>{}) {}
  explicit Decoder(std::span<const std::byte> in)
      : begin_(in.data()), at_(in.data()), end_(in.data() + in.size()) {}
  Decoder(std::span<const std::byte> in, std::optional<OutOfBand> out_of_band) : Decoder(in) {
    if (!out_of_band) return;
    apart_length_ = out_of_band->length;
    apart_position_ = out_of_band->position;
    apart_ = Apart::pending;
  }

  template <class... Ts>
  void operator()(Ts&&... items) {
    if constexpr (all_fixed_v<Ts...>) {
      constexpr size_t bytes = (fixed_bytes_v<Ts> + ... + 0);
      if (!have(bytes)) {
        ((items = std::remove_cvref_t<Ts>{}), ...);
        return;
      }
      RawDecoder raw(at_);
      (item(raw, items), ...);
      at_ += bytes;
      if (!raw.booleans_ok()) fail(Fault::value);
    } else {
      (one(items), ...);
    }
  }
  template <class... Ts>
  void fields(const char*, Ts&&... items) {
    (*this)(items...);
  }
  // An illegal value fails the archive and leaves the first legal one, so that the caller's switch stays
  // defined.
  template <class E>
  void discriminant(const char*, E& v, std::initializer_list<E> legal) {
    uint32_t raw = 0;
    word(raw);
    v = static_cast<E>(raw);
    for (E e : legal) {
      if (e == v) return;
    }
    v = *legal.begin();
    fail(Fault::value);
  }
  template <class E>
  void branch(const char*, E& v) {
    item(*this, v);
  }
  void count(const char*, uint32_t& n, uint32_t max) {
    word(n);
    if (n <= max) return;
    n = 0;
    fail(Fault::limit);
  }
  void ddp(const char*, DdpItem& v, uint32_t max) {
    if (apart_ == Apart::pending && have(4)) [[likely]] {
      const uint32_t length = load_u32(at_);
      const uint32_t position = offset() + 4;
      const bool here = apart_position_ == position_any || apart_position_ == position;
      if (here && apart_length_ == length && length <= max) [[likely]] {
        at_ += 4;
        v = DdpItem{position, length, {}};
        apart_position_ = position;
        apart_ = Apart::taken;
        return;
      }
    }
    ddp_slowly(v, max);
  }
  void fail(Fault fault) {
    if (fault_ == Fault::none) fault_ = fault;
    end_ = at_;
  }

  bool ok() const { return fault_ == Fault::none; }
  Fault fault() const { return fault_; }
  uint32_t remaining() const { return static_cast<uint32_t>(end_ - at_); }
  // True when nothing failed and every byte was used.
  bool at_end() const { return ok() && at_ == end_; }
  // Bytes consumed from the span.
  uint32_t offset() const { return static_cast<uint32_t>(at_ - begin_); }
  // offset() plus what came by RDMA, with its padding, before this point.
  uint32_t whole_position() const {
    return offset() + (apart_ == Apart::taken ? apart_length_ + pad_bytes(apart_length_) : 0);
  }
  // The item that came by RDMA, once the stream's description reached it.
  std::optional<DdpRecord> reduced() const {
    return apart_ == Apart::taken ? std::optional(DdpRecord{apart_position_, apart_length_}) : std::nullopt;
  }
  // Reads v when the next eight bytes are `head` (an operation's number and status), which are taken as well.
  // False: they are not, and nothing was taken; or v did not decode, and fault() says why.
  template <class T>
  bool match(uint64_t head, T& v) {
    constexpr bool fixed_size = fixed_bytes_v<T> != size_varies;
    constexpr size_t bytes = 8 + (fixed_size ? fixed_bytes_v<T> : 0);
    if (static_cast<size_t>(end_ - at_) < bytes || load_u64(at_) != head) [[unlikely]]
      return false;
    if constexpr (fixed_size) {
      RawDecoder raw(at_ + 8);
      item(raw, v);
      at_ += bytes;
      if (raw.booleans_ok()) [[likely]]
        return true;
      fail(Fault::value);
      return false;
    } else {
      at_ += 8;
      item(*this, v);
      return ok();
    }
  }
  // The bytes not yet consumed.
  std::span<const std::byte> rest() const { return {at_, end_}; }
  // Takes n bytes as they are (no padding); empty after a failure.
  std::span<const std::byte> take(size_t n) {
    if (!have(n)) return {};
    std::span<const std::byte> view(at_, n);
    at_ += n;
    return view;
  }

  // Primitives that item() calls.
  void word(uint32_t& v) {
    if (!have(4)) {
      v = 0;
      return;
    }
    v = load_u32(at_);
    at_ += 4;
  }
  void flag(uint32_t& v) {
    word(v);
    if (v > 1) {
      fail(Fault::value);
      v = 0;
    }
  }
  void presence(bool& v) {
    uint32_t raw = 0;
    flag(raw);
    v = raw != 0;
  }
  void hyper(uint64_t& v) {
    if (!have(8)) {
      v = 0;
      return;
    }
    v = load_u64(at_);
    at_ += 8;
  }
  void fixed(std::byte* bytes, size_t n);
  void inline_bytes(uint32_t& size, std::byte* bytes, uint32_t max);
  void opaque(std::span<const std::byte>& v, uint32_t max);
  void text(std::string_view& v, uint32_t max);
  template <class T, ListForm F>
  void sequence(List<T, F>& list, uint32_t max) {
    uint32_t count = 0;
    const std::byte* first = nullptr;
    if constexpr (F == ListForm{0}) {
      word(count);
      if (count > max) return fail(Fault::limit);
      first = at_;
      // An item of no bytes would let a count of 2^32 spin; every described item has at least one word.
      for (uint32_t i = 0; i < count && ok(); ++i) skip<T>();
    } else {
      first = at_;
      bool more = false;
      for (presence(more); more && ok(); presence(more)) {
        if (count == max) return fail(Fault::limit);
        ++count;
        skip<T>();
      }
    }
    list = {};
    if (!ok()) return;
    const std::byte* last = F == ListForm{0} ? at_ : at_ - 4;
    list = List<T, F>::from_encoded({first, last}, count);
  }

 private:
  template <class T>
  void skip() {
    T scratch{};
    one(scratch);
  }
  template <class T>
  void one(T&& v) {
    if constexpr (fixed_bytes_v<T> != size_varies) {
      (*this)(v);
    } else {
      item(*this, v);
    }
  }
  bool have(size_t bytes) {
    if (static_cast<size_t>(end_ - at_) >= bytes) [[likely]]
      return true;
    fail(Fault::truncated);
    return false;
  }
  void ddp_slowly(DdpItem& v, uint32_t max);
  // The bytes of a counted opaque whose length word was read already.
  std::span<const std::byte> body(uint32_t length, uint32_t max);

  const std::byte* begin_;
  const std::byte* at_;
  const std::byte* end_;
  // The item that went by RDMA: there is none, it is still to come, or it was found. The length and position
  // are those to expect before, and those of the item after.
  enum class Apart : uint8_t { none, pending, taken } apart_ = Apart::none;
  uint32_t apart_length_ = 0;
  uint32_t apart_position_ = 0;
  Fault fault_ = Fault::none;
};

}  // namespace nfsrdma::xdr
