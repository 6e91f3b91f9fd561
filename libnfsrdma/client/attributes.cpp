// SPDX-License-Identifier: Apache-2.0
#include "client/attributes.hpp"

#include <charconv>

namespace nfsrdma::client {
namespace {

constexpr uint32_t nobody = 65534;

uint32_t id_of(std::string_view owner) {
  uint32_t id = 0;
  auto [end, failed] = std::from_chars(owner.data(), owner.data() + owner.size(), id);
  if (failed == std::errc{} && end == owner.data() + owner.size()) return id;
  return owner.starts_with("root@") ? 0 : nobody;
}

Time time_of(const nfs4::Time& t) { return {t.seconds, t.nanoseconds < 1'000'000'000 ? t.nanoseconds : 0}; }

std::string_view decimal(uint32_t id, std::array<char, 16>& into) {
  auto [end, failed] = std::to_chars(into.data(), into.data() + into.size(), id);
  return {into.data(), static_cast<size_t>(end - into.data())};
}

nfs4::SetTime set_time(bool now, const std::optional<Time>& t) {
  nfs4::SetTime out;
  if (now || !t) return out;
  out.how = nfs4::TimeHow::client_time;
  out.time = {t->seconds, t->nanoseconds};
  return out;
}

}  // namespace

Attributes to_public(const nfs4::Attributes& in) {
  Attributes out;
  uint32_t type = static_cast<uint32_t>(in.type);
  out.type = type >= 1 && type <= 7 ? static_cast<NodeType>(type) : NodeType::regular;
  out.mode = in.mode & 07777;
  out.links = in.numlinks;
  out.uid = in.has(nfs4::attr::owner) ? id_of(in.owner) : nobody;
  out.gid = in.has(nfs4::attr::owner_group) ? id_of(in.owner_group) : nobody;
  out.size_bytes = in.size;
  out.used_bytes = in.space_used;
  out.rdev_major = in.rawdev.major;
  out.rdev_minor = in.rawdev.minor;
  out.fsid_major = in.fsid.major;
  out.fsid_minor = in.fsid.minor;
  out.fileid = in.fileid;
  out.atime = time_of(in.time_access);
  out.mtime = time_of(in.time_modify);
  out.ctime = time_of(in.time_metadata);
  out.change = in.change;
  return out;
}

bool decode_stat(const nfs4::Fattr& in, nfs4::Attributes& raw, Attributes& out) {
  if (nfs4::decode_fattr(in, raw) == nfs4::FattrRead::malformed) return false;
  if (!raw.has(nfs4::attr::type)) return false;
  out = to_public(raw);
  return true;
}

bool encode_change(const AttributeChange& change, ChangeScratch& scratch, nfs4::Fattr& out) {
  namespace attr = nfs4::attr;
  nfs4::Bitmap mask;
  nfs4::Attributes values;
  if (change.size_bytes) {
    mask.set(attr::size);
    values.size = *change.size_bytes;
  }
  if (change.mode) {
    mask.set(attr::mode);
    values.mode = *change.mode & 07777;
  }
  if (change.uid) {
    mask.set(attr::owner);
    values.owner = decimal(*change.uid, scratch.owner);
  }
  if (change.gid) {
    mask.set(attr::owner_group);
    values.owner_group = decimal(*change.gid, scratch.group);
  }
  if (change.atime_now || change.atime) {
    mask.set(attr::time_access_set);
    values.time_access_set = set_time(change.atime_now, change.atime);
  }
  if (change.mtime_now || change.mtime) {
    mask.set(attr::time_modify_set);
    values.time_modify_set = set_time(change.mtime_now, change.mtime);
  }
  return nfs4::encode_fattr(mask, values, scratch.values, out);
}

}  // namespace nfsrdma::client
