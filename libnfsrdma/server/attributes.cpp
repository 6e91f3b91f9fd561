// SPDX-License-Identifier: Apache-2.0
#include "server/attributes.hpp"

#include <charconv>

namespace nfsrdma::server {
namespace {

namespace attr = nfs4::attr;
using nfs4::Bitmap;

constexpr Bitmap filesystem_mask{attr::files_avail, attr::files_free,  attr::files_total, attr::maxname,
                                 attr::space_avail, attr::space_free, attr::space_total};
constexpr uint32_t links_max = 65000;

std::string_view decimal(uint32_t id, std::array<char, 12>& out) {
  auto end = std::to_chars(out.data(), out.data() + out.size(), id).ptr;
  return {out.data(), static_cast<size_t>(end - out.data())};
}

// "1000", as AUTH_SYS clients without an id mapper send it. Names would need a name service, which may block.
bool id_of(std::string_view text, uint32_t& id) {
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), id);
  return failed == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool good_time(const nfs4::SetTime& t) { return t.how == nfs4::TimeHow::server_time || t.time.nanoseconds < 1000000000; }

}  // namespace

const Bitmap attributes_readable{
    attr::supported_attrs, attr::type,          attr::fh_expire_type,   attr::change,        attr::size,
    attr::link_support,    attr::symlink_support, attr::named_attr,     attr::fsid,          attr::unique_handles,
    attr::lease_time,      attr::rdattr_error,  attr::cansettime,       attr::case_insensitive,
    attr::case_preserving, attr::chown_restricted, attr::filehandle,    attr::fileid,        attr::files_avail,
    attr::files_free,      attr::files_total,   attr::homogeneous,      attr::maxfilesize,   attr::maxlink,
    attr::maxname,         attr::maxread,       attr::maxwrite,         attr::mode,          attr::no_trunc,
    attr::numlinks,        attr::owner,         attr::owner_group,      attr::rawdev,        attr::space_avail,
    attr::space_free,      attr::space_total,   attr::space_used,       attr::time_access,   attr::time_create,
    attr::time_delta,      attr::time_metadata, attr::time_modify,      attr::mounted_on_fileid,
    attr::suppattr_exclcreat};
const Bitmap attributes_settable{attr::size,        attr::mode,            attr::owner,
                                 attr::owner_group, attr::time_access_set, attr::time_modify_set};
const Bitmap attributes_with_exclusive{attr::size, attr::mode, attr::owner, attr::owner_group};

bool wants_filesystem(const Bitmap& mask) { return !(mask & filesystem_mask).none(); }

void AttributeValues::set_constants(const ServerContext& context) {
  values.supported_attrs = attributes_readable | attributes_settable;
  values.fh_expire_type = 0;
  values.link_support = values.symlink_support = values.unique_handles = true;
  values.lease_time_s = context.lease_s;
  values.rdattr_error = Status::ok;
  values.cansettime = values.case_preserving = values.chown_restricted = true;
  values.homogeneous = values.no_trunc = true;
  values.maxfilesize = INT64_MAX;
  values.maxlink = links_max;
  values.maxread = values.maxwrite = context.data_bytes_max;
  values.time_delta = {0, 1};
  values.suppattr_exclcreat = attributes_with_exclusive;
}

void AttributeValues::set_object(const ObjectAttributes& a, const FileHandle& handle) {
  values.type = a.type;
  values.change = a.change;
  values.size = a.size_bytes;
  values.fsid = a.fsid;
  values.filehandle = handle;
  values.fileid = values.mounted_on_fileid = a.fileid;
  values.mode = a.mode;
  values.numlinks = a.links;
  values.owner = decimal(a.uid, owner_);
  values.owner_group = decimal(a.gid, group_);
  values.rawdev = a.device;
  values.space_used = a.used_bytes;
  values.time_access = a.accessed;
  values.time_create = a.has_created ? a.created : a.status_changed;
  values.time_metadata = a.status_changed;
  values.time_modify = a.modified;
}

void AttributeValues::set_filesystem(const FilesystemAttributes& a) {
  values.files_avail = a.files_available;
  values.files_free = a.files_free;
  values.files_total = a.files_total;
  values.maxname = a.name_bytes_max;
  values.space_avail = a.bytes_available;
  values.space_free = a.bytes_free;
  values.space_total = a.bytes_total;
}

io::Task<Status> collect_attributes(Compound& c, const ObjectRef& object, const Bitmap& mask, AttributeValues& out) {
  Answer<ObjectAttributes> attributes = co_await c.store.attributes(object);
  if (!attributes.ok()) co_return attributes.status;
  out.set_constants(c.context);
  out.set_object(*attributes, object->handle());
  if (wants_filesystem(mask)) {
    Answer<FilesystemAttributes> filesystem = co_await c.store.filesystem(object);
    if (!filesystem.ok()) co_return filesystem.status;
    out.set_filesystem(*filesystem);
  }
  co_return Status::ok;
}

Status read_settable(const nfs4::Fattr& in, SetAttributes& out) {
  using S = SetAttributes;
  Bitmap unsupported = in.mask - (attributes_readable | attributes_settable);
  if (!unsupported.none()) return Status::attrnotsupp;
  if (!(in.mask - attributes_settable).none()) return Status::inval;
  nfs4::Attributes a;
  if (nfs4::decode_fattr(in, a) != nfs4::FattrRead::complete) return Status::badxdr;
  if (a.has(attr::size)) out.what |= S::size;
  out.size_bytes = a.size;
  if (a.has(attr::mode)) {
    if (a.mode > 07777) return Status::inval;
    out.what |= S::mode;
    out.mode_bits = a.mode;
  }
  if (a.has(attr::owner)) {
    if (!id_of(a.owner, out.uid_value)) return Status::badowner;
    out.what |= S::uid;
  }
  if (a.has(attr::owner_group)) {
    if (!id_of(a.owner_group, out.gid_value)) return Status::badowner;
    out.what |= S::gid;
  }
  if (!good_time(a.time_access_set) || !good_time(a.time_modify_set)) return Status::inval;
  if (a.has(attr::time_access_set)) {
    out.what |= S::accessed;
    out.accessed_now = a.time_access_set.how == nfs4::TimeHow::server_time;
    out.accessed_time = a.time_access_set.time;
  }
  if (a.has(attr::time_modify_set)) {
    out.what |= S::modified;
    out.modified_now = a.time_modify_set.how == nfs4::TimeHow::server_time;
    out.modified_time = a.time_modify_set.time;
  }
  return Status::ok;
}

Bitmap set_mask(uint32_t what, const Bitmap& asked) {
  using S = SetAttributes;
  constexpr std::pair<uint32_t, uint32_t> numbers[] = {
      {S::size, attr::size},         {S::mode, attr::mode},
      {S::uid, attr::owner},         {S::gid, attr::owner_group},
      {S::accessed, attr::time_access_set}, {S::modified, attr::time_modify_set}};
  Bitmap mask;
  for (auto [bit, number] : numbers) {
    if ((what & bit) && asked.test(number)) mask.set(number);
  }
  return mask;
}

}  // namespace nfsrdma::server
