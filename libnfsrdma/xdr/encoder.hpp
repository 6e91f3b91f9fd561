// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "xdr/archive.hpp"
#include "xdr/sequence.hpp"

namespace nfsrdma::xdr {

// Stores into memory whose room was already checked: the straight-line half of Encoder.
class RawEncoder {
 public:
  static constexpr bool writes_value = false;
  explicit RawEncoder(std::byte* at) : at_(at) {}

  template <class... Ts>
  void operator()(Ts&&... items) {
    (item(*this, items), ...);
  }
  template <class... Ts>
  void fields(const char*, Ts&&... items) {
    (item(*this, items), ...);
  }
  void word(uint32_t v) {
    store_u32(at_, v);
    at_ += 4;
  }
  void flag(uint32_t v) { word(v); }
  void hyper(uint64_t v) {
    store_u64(at_, v);
    at_ += 8;
  }
  void fixed(const std::byte* bytes, size_t n) {
    std::memcpy(at_, bytes, n);
    for (size_t i = n; i < padded_bytes(n); ++i) at_[i] = std::byte{0};
    at_ += padded_bytes(n);
  }

 private:
  std::byte* at_;
};

// Writes values into the caller's buffer. The first failure is kept in fault() and stops everything after it;
// what was written before stays. Copies what it is given: nothing of the values is referenced later.
class Encoder {
 public:
  static constexpr bool writes_value = false;

  // In the reduced form the first ddp() item's bytes and padding are left out and recorded; later ones are
  // written.
  explicit Encoder(std::span<std::byte> out, Form form = Form::whole)
      : begin_(out.data()), at_(out.data()), end_(out.data() + out.size()), form_(form) {}

  template <class... Ts>
  void operator()(Ts&&... items) {
    if constexpr (all_fixed_v<Ts...>) {
      constexpr size_t bytes = (fixed_bytes_v<Ts> + ... + 0);
      if (!room(bytes)) return;
      RawEncoder raw(at_);
      (item(raw, items), ...);
      at_ += bytes;
    } else {
      (one(items), ...);
    }
  }
  template <class... Ts>
  void fields(const char*, Ts&&... items) {
    (*this)(items...);
  }
  template <class E>
  void discriminant(const char*, E& v, std::initializer_list<E> legal) {
    for (E e : legal) {
      if (e == v) return word(static_cast<uint32_t>(v));
    }
    fail(Fault::value);
  }
  template <class E>
  void branch(const char*, E& v) {
    word(static_cast<uint32_t>(v));
  }
  void count(const char*, uint32_t& n, uint32_t max) {
    if (n > max) return fail(Fault::limit);
    word(n);
  }
  void ddp(const char*, DdpItem& v, uint32_t max);
  void fail(Fault fault) {
    if (fault_ == Fault::none) fault_ = fault;
    end_ = at_;
  }

  bool ok() const { return fault_ == Fault::none; }
  Fault fault() const { return fault_; }
  // Bytes written so far (the reduced stream's size in the reduced form).
  uint32_t size() const { return static_cast<uint32_t>(at_ - begin_); }
  // Size of the whole stream so far: size() plus what was left out.
  uint32_t whole_size() const {
    return size() + (record_ ? record_->length + pad_bytes(record_->length) : 0);
  }
  uint32_t room_bytes() const { return static_cast<uint32_t>(end_ - at_); }
  std::span<const std::byte> written() const { return {begin_, at_}; }
  // The item that was left out, if any.
  const std::optional<DdpRecord>& reduced() const { return record_; }

  // Overwrites a word written earlier; offset + 4 <= size().
  void patch_u32(uint32_t offset, uint32_t v) { store_u32(begin_ + offset, v); }

  // A place to come back to: rollback() forgets everything written, recorded or failed since mark().
  struct Mark {
    std::byte* at;
    std::byte* end;
    std::optional<DdpRecord> record;
    Fault fault;
  };
  Mark mark() const { return Mark{at_, end_, record_, fault_}; }
  void rollback(const Mark& mark) {
    at_ = mark.at;
    end_ = mark.end;
    record_ = mark.record;
    fault_ = mark.fault;
  }

  // Already encoded XDR, copied as it is; bytes.size() is a multiple of 4.
  void raw(std::span<const std::byte> bytes);

  // Primitives that item() calls.
  void word(uint32_t v) {
    if (!room(4)) return;
    store_u32(at_, v);
    at_ += 4;
  }
  void flag(uint32_t v) { word(v); }
  void presence(bool v) { word(v ? 1 : 0); }
  void hyper(uint64_t v) {
    if (!room(8)) return;
    store_u64(at_, v);
    at_ += 8;
  }
  void fixed(const std::byte* bytes, size_t n);
  // Inlined, unlike the other variable-length items: PUTFH is in every hot compound.
  void inline_bytes(uint32_t size, const std::byte* bytes, uint32_t max) {
    if (size > max) return fail(Fault::limit);
    const size_t total = 4 + padded_bytes(size);
    if (!room(total)) return;
    store_u32(at_, size);
    if (size != 0) {
      std::memset(at_ + total - 4, 0, 4);
      std::memcpy(at_ + 4, bytes, size);
    }
    at_ += total;
  }
  void opaque(std::span<const std::byte> v, uint32_t max) { variable(v.data(), v.size(), max); }
  void text(std::string_view v, uint32_t max) {
    variable(reinterpret_cast<const std::byte*>(v.data()), v.size(), max);
  }
  template <class T, ListForm F>
  void sequence(const List<T, F>& list, uint32_t max) {
    if (list.size() > max) return fail(Fault::limit);
    if constexpr (F == ListForm::counted) word(list.size());
    if (list.is_encoded()) {
      raw(list.encoded());
    } else {
      for (const T& element : list.items()) {
        if (!ok()) return;
        if constexpr (F == ListForm::linked) word(1);
        one(element);
      }
    }
    if constexpr (F == ListForm::linked) word(0);
  }

 private:
  template <class T>
  void one(T&& v) {
    if constexpr (fixed_bytes_v<T> != size_varies) {
      (*this)(v);
    } else {
      item(*this, v);
    }
  }
  bool room(size_t bytes) {
    if (static_cast<size_t>(end_ - at_) >= bytes) [[likely]]
      return true;
    fail(Fault::overflow);
    return false;
  }
  void variable(const std::byte* bytes, size_t n, uint32_t max);

  std::byte* begin_;
  std::byte* at_;
  std::byte* end_;
  std::optional<DdpRecord> record_;
  Form form_;
  Fault fault_ = Fault::none;
};

}  // namespace nfsrdma::xdr
