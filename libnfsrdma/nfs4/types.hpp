// SPDX-License-Identifier: Apache-2.0
// The small types that many operations share. Strings and opaques are views: after decoding they point into
// the message, before encoding into the caller's memory; who keeps one longer copies it.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "base/bytes.hpp"
#include "nfs4/constants.hpp"
#include "xdr/archive.hpp"
#include "xdr/sequence.hpp"

namespace nfsrdma::xdr {
class Printer;
}

namespace nfsrdma::nfs4 {

using ByteView = base::ConstBytes;
using Verifier = std::array<std::byte, verifier_bytes>;
using SessionId = std::array<std::byte, session_id_bytes>;
using ClientId = uint64_t;

using base::bytes_of;
using base::text_of;

struct Stateid {
  uint32_t seqid = 0;
  std::array<std::byte, stateid_other_bytes> other{};

  bool operator==(const Stateid&) const = default;
  // The same state, whatever its version.
  bool same_state(const Stateid& o) const { return other == o.other; }
  // For READ, WRITE, SETATTR: seqid 0 means "the newest" (RFC 8881, 8.2.2).
  Stateid newest() const { return Stateid{0, other}; }
};
// RFC 8881, 8.2.3.
inline constexpr Stateid anonymous_stateid{};
inline constexpr Stateid current_stateid{1, {}};
inline constexpr Stateid invalid_stateid{UINT32_MAX, {}};
constexpr Stateid make_bypass_stateid() {
  Stateid s{UINT32_MAX, {}};
  for (std::byte& b : s.other) b = std::byte{0xff};
  return s;
}
inline constexpr Stateid bypass_stateid = make_bypass_stateid();

template <class A>
constexpr void describe(A& ar, Stateid& v) {
  ar.fields("seqid other", v.seqid, v.other);
}

// nfs_fh4 by value: handles outlive the message they came in. Bytes beyond size are undefined.
struct FileHandle {
  xdr::InlineBytes<file_handle_bytes_max> data;

  constexpr FileHandle() {}  // leaves the bytes alone: nobody reads beyond size
  // bytes.size() is at most file_handle_bytes_max; what is longer is cut.
  explicit FileHandle(ByteView bytes) {
    data.size = static_cast<uint32_t>(std::min<size_t>(bytes.size(), file_handle_bytes_max));
    std::copy_n(bytes.begin(), data.size, data.bytes.begin());
  }
  ByteView bytes() const { return data.view(); }
  bool empty() const { return data.size == 0; }
  bool operator==(const FileHandle& o) const { return std::ranges::equal(bytes(), o.bytes()); }
  std::strong_ordering operator<=>(const FileHandle& o) const {
    return text_of(bytes()).compare(text_of(o.bytes())) <=> 0;
  }
  size_t hash() const { return std::hash<std::string_view>{}(text_of(bytes())); }
};
template <class A>
constexpr void describe(A& ar, FileHandle& v) {
  ar.fields("", v.data);
}

// bitmap4. Keeps the number of words it came with, so that it encodes again as it was; comparison ignores
// trailing zero words.
struct Bitmap {
  std::array<uint32_t, bitmap_words_max> words{};
  uint32_t count = 0;  // words on the wire, <= bitmap_words_max

  constexpr Bitmap() = default;
  constexpr Bitmap(std::initializer_list<uint32_t> bits) {
    for (uint32_t bit : bits) set(bit);
  }
  // bit < 32 * bitmap_words_max, else ignored.
  constexpr void set(uint32_t bit) {
    if (bit >= 32 * bitmap_words_max) return;
    words[bit / 32] |= 1u << (bit % 32);
    count = std::max(count, bit / 32 + 1);
  }
  constexpr void clear(uint32_t bit) {
    if (bit < 32 * bitmap_words_max) words[bit / 32] &= ~(1u << (bit % 32));
  }
  constexpr bool test(uint32_t bit) const {
    return bit < 32 * bitmap_words_max && (words[bit / 32] >> (bit % 32) & 1u) != 0;
  }
  constexpr bool none() const {
    for (uint32_t w : words) {
      if (w != 0) return false;
    }
    return true;
  }
  // Drops trailing zero words.
  constexpr void trim() {
    while (count > 0 && words[count - 1] == 0) --count;
  }
  constexpr bool operator==(const Bitmap& o) const { return words == o.words; }
  friend constexpr Bitmap operator&(const Bitmap& a, const Bitmap& b) {
    Bitmap r;
    r.count = std::min(a.count, b.count);
    for (uint32_t i = 0; i < bitmap_words_max; ++i) r.words[i] = a.words[i] & b.words[i];
    return r;
  }
  friend constexpr Bitmap operator|(const Bitmap& a, const Bitmap& b) {
    Bitmap r;
    r.count = std::max(a.count, b.count);
    for (uint32_t i = 0; i < bitmap_words_max; ++i) r.words[i] = a.words[i] | b.words[i];
    return r;
  }
  // Bits of a that b lacks.
  friend constexpr Bitmap operator-(const Bitmap& a, const Bitmap& b) {
    Bitmap r = a;
    for (uint32_t i = 0; i < bitmap_words_max; ++i) r.words[i] &= ~b.words[i];
    return r;
  }
};
template <class A>
constexpr void describe(A& ar, Bitmap& v) {
  if constexpr (A::writes_value) v = Bitmap{};
  ar.count("words", v.count, bitmap_words_max);
  for (uint32_t i = 0; i < v.count && i < bitmap_words_max; ++i) ar(v.words[i]);
}

// A bitmap4 of anything but attributes: operations, callback kinds.
struct BitSet : Bitmap {
  using Bitmap::Bitmap;
};

struct Time {
  int64_t seconds = 0;
  uint32_t nanoseconds = 0;
  bool operator==(const Time&) const = default;
};
template <class A>
constexpr void describe(A& ar, Time& v) {
  ar.fields("s ns", v.seconds, v.nanoseconds);
}

struct Fsid {
  uint64_t major = 0;
  uint64_t minor = 0;
  bool operator==(const Fsid&) const = default;
  auto operator<=>(const Fsid&) const = default;
};
template <class A>
constexpr void describe(A& ar, Fsid& v) {
  ar.fields("major minor", v.major, v.minor);
}

struct ChangeInfo {
  bool atomic = false;
  uint64_t before = 0;
  uint64_t after = 0;
  bool operator==(const ChangeInfo&) const = default;
};
template <class A>
constexpr void describe(A& ar, ChangeInfo& v) {
  ar.fields("atomic before after", v.atomic, v.before, v.after);
}

struct Device {
  uint32_t major = 0;
  uint32_t minor = 0;
  bool operator==(const Device&) const = default;
};
template <class A>
constexpr void describe(A& ar, Device& v) {
  ar.fields("major minor", v.major, v.minor);
}

// open_owner4, lock_owner4.
struct StateOwner {
  ClientId clientid = 0;
  ByteView owner{};
};
template <class A>
constexpr void describe(A& ar, StateOwner& v) {
  ar.fields("clientid owner", v.clientid, xdr::bounded(v.owner, opaque_bytes_max));
}

// client_owner4: who the client is (owner) and which of its lives this is (verifier).
struct ClientOwner {
  Verifier verifier{};
  ByteView owner{};
};
template <class A>
constexpr void describe(A& ar, ClientOwner& v) {
  ar.fields("verifier owner", v.verifier, xdr::bounded(v.owner, opaque_bytes_max));
}

struct ServerOwner {
  uint64_t minor = 0;
  ByteView major{};
};
template <class A>
constexpr void describe(A& ar, ServerOwner& v) {
  ar.fields("minor major", v.minor, xdr::bounded(v.major, opaque_bytes_max));
}

struct ImplId {
  std::string_view domain{};
  std::string_view name{};
  Time date{};
};
template <class A>
constexpr void describe(A& ar, ImplId& v) {
  ar.fields("domain name date", xdr::bounded(v.domain, opaque_bytes_max),
            xdr::bounded(v.name, opaque_bytes_max), v.date);
}

struct Ace {
  uint32_t type = 0;
  uint32_t flag = 0;
  uint32_t mask = 0;
  std::string_view who{};
};
template <class A>
constexpr void describe(A& ar, Ace& v) {
  ar.fields("type flag mask who", v.type, v.flag, v.mask, xdr::bounded(v.who, principal_bytes_max));
}

// fattr4 as it is on the wire: which attributes, and their values in ascending order. fattr.hpp gives it
// types.
struct Fattr {
  Bitmap mask{};
  ByteView values{};
};
template <class A>
constexpr void describe(A& ar, Fattr& v) {
  ar.fields("mask values", v.mask, xdr::bounded(v.values, attribute_bytes_max));
}
// For traces: the attributes by name, "{type=1 size=4096}"; a fattr4 that does not decode ends in "?". A mask
// of attributes prints as their names.
void print_to(xdr::Printer& printer, const Fattr& fattr);
void print_to(xdr::Printer& printer, const Bitmap& mask);
void print_to(xdr::Printer& printer, const BitSet& bits);

// Arguments or results that are nothing at all (beyond the operation number and the status).
template <auto OpValue>
struct NoBody {
  static constexpr auto op = OpValue;
};
template <class A, auto OpValue>
constexpr void describe(A&, NoBody<OpValue>&) {}

// Results whose body depends on a failure's status overload this. The default: a failure carries nothing.
template <class A, class R>
constexpr void describe_failure(A&, Status, R&) {}

// One operation's result as it stands in a compound, after the operation number: the status and what goes
// with it.
template <class R>
struct Outcome {
  Status status = Status::ok;
  R body{};
};
template <class A, class R>
constexpr void describe(A& ar, Outcome<R>& v) {
  ar.branch("status", v.status);
  if (v.status == Status::ok) {
    ar.fields("", v.body);
  } else {
    describe_failure(ar, v.status, v.body);
  }
}

}  // namespace nfsrdma::nfs4

template <>
struct std::hash<nfsrdma::nfs4::FileHandle> {
  size_t operator()(const nfsrdma::nfs4::FileHandle& fh) const { return fh.hash(); }
};
