// SPDX-License-Identifier: Apache-2.0
// Names and directories: RFC 8881, 18.4, 18.9, 18.23 to 18.26.
#pragma once

#include "nfs4/types.hpp"

namespace nfsrdma::nfs4 {

struct CreateResult {
  static constexpr Op op = Op::create;
  ChangeInfo dir_change{};
  Bitmap attributes_set{};
};
template <class A>
constexpr void describe(A& ar, CreateResult& v) {
  ar.fields("dir_change attributes_set", v.dir_change, v.attributes_set);
}
// Everything but regular files. link_text for symlinks (it may travel by RDMA), device for block and
// character devices. type holds what came: createtype4 has a default arm, so a bad type is for the server to
// answer.
struct CreateArgs {
  static constexpr Op op = Op::create;
  using Result = CreateResult;
  FileType type = FileType::directory;
  xdr::DdpItem link_text{};
  Device device{};
  std::string_view name{};
  Fattr attributes{};
};
template <class A>
constexpr void describe(A& ar, CreateArgs& v) {
  ar.branch("type", v.type);
  if (v.type == FileType::symlink) ar.ddp("link_text", v.link_text, link_text_bytes_max);
  if (v.type == FileType::block || v.type == FileType::character) ar.fields("device", v.device);
  ar.fields("name attributes", xdr::bounded(v.name, component_bytes_max), v.attributes);
}

struct RemoveResult {
  static constexpr Op op = Op::remove;
  ChangeInfo dir_change{};
};
template <class A>
constexpr void describe(A& ar, RemoveResult& v) {
  ar.fields("dir_change", v.dir_change);
}
struct RemoveArgs {
  static constexpr Op op = Op::remove;
  using Result = RemoveResult;
  std::string_view name{};
};
template <class A>
constexpr void describe(A& ar, RemoveArgs& v) {
  ar.fields("name", xdr::bounded(v.name, component_bytes_max));
}

struct RenameResult {
  static constexpr Op op = Op::rename;
  ChangeInfo source_change{};
  ChangeInfo target_change{};
};
template <class A>
constexpr void describe(A& ar, RenameResult& v) {
  ar.fields("source_change target_change", v.source_change, v.target_change);
}
// Saved file handle: source directory; current: target directory.
struct RenameArgs {
  static constexpr Op op = Op::rename;
  using Result = RenameResult;
  std::string_view old_name{};
  std::string_view new_name{};
};
template <class A>
constexpr void describe(A& ar, RenameArgs& v) {
  ar.fields("old_name new_name", xdr::bounded(v.old_name, component_bytes_max),
            xdr::bounded(v.new_name, component_bytes_max));
}

struct LinkResult {
  static constexpr Op op = Op::link;
  ChangeInfo dir_change{};
};
template <class A>
constexpr void describe(A& ar, LinkResult& v) {
  ar.fields("dir_change", v.dir_change);
}
// Saved file handle: the file; current: the directory of the new name.
struct LinkArgs {
  static constexpr Op op = Op::link;
  using Result = LinkResult;
  std::string_view new_name{};
};
template <class A>
constexpr void describe(A& ar, LinkArgs& v) {
  ar.fields("new_name", xdr::bounded(v.new_name, component_bytes_max));
}

struct ReadlinkResult {
  static constexpr Op op = Op::readlink;
  xdr::DdpItem text{};
};
template <class A>
constexpr void describe(A& ar, ReadlinkResult& v) {
  ar.ddp("text", v.text, link_text_bytes_max);
}
struct ReadlinkArgs : NoBody<Op::readlink> {
  using Result = ReadlinkResult;
};

// entry4.
struct DirEntry {
  uint64_t cookie = 0;
  std::string_view name{};
  Fattr attributes{};
};
template <class A>
constexpr void describe(A& ar, DirEntry& v) {
  ar.fields("cookie name attributes", v.cookie, xdr::bounded(v.name, component_bytes_max), v.attributes);
}

// A server that fills a reply up to maxcount encodes "1 entry" pairs into a scratch buffer and hands them over
// with xdr::Chain<DirEntry>::from_encoded.
struct ReaddirResult {
  static constexpr Op op = Op::readdir;
  Verifier cookie_verifier{};
  xdr::Chain<DirEntry> entries{};
  bool eof = false;
};
template <class A>
constexpr void describe(A& ar, ReaddirResult& v) {
  ar.fields("cookie_verifier entries eof", v.cookie_verifier, xdr::bounded(v.entries, dir_entries_max),
            v.eof);
}
// maxcount bounds the result's body: verifier, entries, end of list and eof.
struct ReaddirArgs {
  static constexpr Op op = Op::readdir;
  using Result = ReaddirResult;
  uint64_t cookie = 0;
  Verifier cookie_verifier{};
  uint32_t dircount_bytes = 0;
  uint32_t maxcount_bytes = 0;
  Bitmap mask{};
};
template <class A>
constexpr void describe(A& ar, ReaddirArgs& v) {
  ar.fields("cookie cookie_verifier dircount maxcount mask", v.cookie, v.cookie_verifier, v.dircount_bytes,
            v.maxcount_bytes, v.mask);
}
// What a READDIR result costs without entries: verifier, the list's final 0, eof.
inline constexpr uint32_t readdir_overhead_bytes = 8 + 4 + 4;

}  // namespace nfsrdma::nfs4
