// SPDX-License-Identifier: Apache-2.0
// File attributes with types (RFC 8881, section 5; RFC 7862, 12.2; RFC 8276, 8.2) and the conversion from and
// to fattr4, which on the wire is a mask and the values in ascending order of attribute number.
#pragma once

#include "nfs4/types.hpp"
#include "xdr/decoder.hpp"
#include "xdr/encoder.hpp"

namespace nfsrdma::nfs4 {

// settime4.
enum class TimeHow : uint32_t { server_time = 0, client_time = 1 };
struct SetTime {
  TimeHow how = TimeHow::server_time;
  Time time{};  // for client_time
};
template <class A>
constexpr void describe(A& ar, SetTime& v) {
  ar.discriminant("how", v.how, {TimeHow::server_time, TimeHow::client_time});
  if (v.how == TimeHow::client_time) ar.fields("time", v.time);
}

struct PathComponent {
  std::string_view text{};
};
template <class A>
constexpr void describe(A& ar, PathComponent& v) {
  ar.fields("", xdr::bounded(v.text, component_bytes_max));
}
struct FsLocation {
  xdr::Array<PathComponent> servers{};
  xdr::Array<PathComponent> root_path{};
};
template <class A>
constexpr void describe(A& ar, FsLocation& v) {
  ar.fields("servers root_path", xdr::bounded(v.servers, fs_locations_max),
            xdr::bounded(v.root_path, path_components_max));
}
struct FsLocations {
  xdr::Array<PathComponent> root{};
  xdr::Array<FsLocation> locations{};
};
template <class A>
constexpr void describe(A& ar, FsLocations& v) {
  ar.fields("root locations", xdr::bounded(v.root, path_components_max),
            xdr::bounded(v.locations, fs_locations_max));
}

// nfsacl41.
struct Acl41 {
  uint32_t flag = 0;
  xdr::Array<Ace> aces{};
};
template <class A>
constexpr void describe(A& ar, Acl41& v) {
  ar.fields("flag aces", v.flag, xdr::bounded(v.aces, ace_count_max));
}

struct ChangePolicy {
  uint64_t major = 0;
  uint64_t minor = 0;
};
template <class A>
constexpr void describe(A& ar, ChangePolicy& v) {
  ar.fields("major minor", v.major, v.minor);
}

struct MaskedMode {
  uint32_t value = 0;
  uint32_t mask = 0;
};
template <class A>
constexpr void describe(A& ar, MaskedMode& v) {
  ar.fields("value mask", v.value, v.mask);
}

struct ModeUmask {
  uint32_t mode = 0;
  uint32_t umask = 0;
};
template <class A>
constexpr void describe(A& ar, ModeUmask& v) {
  ar.fields("mode umask", v.mode, v.umask);
}

struct SecLabel {
  uint32_t format = 0;
  uint32_t policy = 0;
  ByteView label{};
};
template <class A>
constexpr void describe(A& ar, SecLabel& v) {
  ar.fields("format policy label", v.format, v.policy, xdr::bounded(v.label, attribute_bytes_max));
}

// change_attr_type4: how `change` values of one object may be ordered.
enum class ChangeAttrType : uint32_t {
  monotonic_incr = 0,
  version_counter = 1,
  version_counter_nopnfs = 2,
  time_metadata = 3,
  undefined = 4,
};

// Values of the attributes named in `present`; the others keep their defaults. Views point into the fattr4
// that was decoded.
struct Attributes {
  Bitmap present{};
  Bitmap supported_attrs{};
  FileType type = FileType::regular;
  uint32_t fh_expire_type = 0;
  uint64_t change = 0;
  uint64_t size = 0;
  bool link_support = false;
  bool symlink_support = false;
  bool named_attr = false;
  Fsid fsid{};
  bool unique_handles = false;
  uint32_t lease_time_s = 0;
  Status rdattr_error = Status::ok;
  xdr::Array<Ace> acl{};
  uint32_t aclsupport = 0;
  bool archive = false;
  bool cansettime = false;
  bool case_insensitive = false;
  bool case_preserving = false;
  bool chown_restricted = false;
  FileHandle filehandle{};
  uint64_t fileid = 0;
  uint64_t files_avail = 0;
  uint64_t files_free = 0;
  uint64_t files_total = 0;
  FsLocations fs_locations{};
  bool hidden = false;
  bool homogeneous = false;
  uint64_t maxfilesize = 0;
  uint32_t maxlink = 0;
  uint32_t maxname = 0;
  uint64_t maxread = 0;
  uint64_t maxwrite = 0;
  std::string_view mimetype{};
  uint32_t mode = 0;
  bool no_trunc = false;
  uint32_t numlinks = 0;
  std::string_view owner{};
  std::string_view owner_group{};
  uint64_t quota_avail_hard = 0;
  uint64_t quota_avail_soft = 0;
  uint64_t quota_used = 0;
  Device rawdev{};
  uint64_t space_avail = 0;
  uint64_t space_free = 0;
  uint64_t space_total = 0;
  uint64_t space_used = 0;
  bool system = false;
  Time time_access{};
  SetTime time_access_set{};
  Time time_backup{};
  Time time_create{};
  Time time_delta{};
  Time time_metadata{};
  Time time_modify{};
  SetTime time_modify_set{};
  uint64_t mounted_on_fileid = 0;
  Time dir_notif_delay{};
  Time dirent_notif_delay{};
  Acl41 dacl{};
  Acl41 sacl{};
  ChangePolicy change_policy{};
  xdr::Array<uint32_t> fs_layout_types{};
  xdr::Array<uint32_t> layout_types{};
  uint32_t layout_blksize = 0;
  uint32_t layout_alignment = 0;
  MaskedMode mode_set_masked{};
  Bitmap suppattr_exclcreat{};
  uint32_t fs_charset_cap = 0;
  uint32_t clone_blksize = 0;
  uint64_t space_freed = 0;
  ChangeAttrType change_attr_type = ChangeAttrType::undefined;
  SecLabel sec_label{};
  ModeUmask mode_umask{};
  bool xattr_support = false;
  bool offline = false;
  Time time_deleg_access{};
  Time time_deleg_modify{};

  bool has(uint32_t number) const { return present.test(number); }
};

// What is known of an attribute number without a value.
struct AttributeInfo {
  const char* name;
  uint32_t bytes_max;  // bound of the encoded value; attribute_bytes_max where the protocol sets none
  bool typed;          // Attributes has it; otherwise it can be neither encoded nor decoded here
  bool readable;       // GETATTR and READDIR may ask for it
  bool settable;       // SETATTR, OPEN and CREATE may set it
};
// number < attribute_number_end, else nullptr.
const AttributeInfo* attribute_info(uint32_t number);

// Bound of the encoded fattr4 (mask, length and values) that answers this mask. Attributes beyond what the
// specifications name count as attribute_bytes_max each.
uint64_t fattr_bytes_max(const Bitmap& mask);

enum class FattrRead : uint8_t {
  complete,   // every attribute of the mask is in `out`
  unknown,    // those before the first unknown number are in `out` and in out.present; the rest is unreadable
  malformed,  // the values do not decode or bytes are left over; out.present names what was read before
};
// Reads typed values; views in `out` point into in.values.
FattrRead decode_fattr(const Fattr& in, Attributes& out);

// Writes the values of `mask` into scratch and lets `out` view them there. False when scratch is too small, a
// value is above its limit, or the mask names an attribute without a type here.
bool encode_fattr(const Bitmap& mask, const Attributes& values, std::span<std::byte> scratch, Fattr& out);

// Attribute sets that are asked for together.
inline constexpr Bitmap stat_attributes{
    attr::type,       attr::change,      attr::size,          attr::fsid,        attr::fileid,
    attr::mode,       attr::numlinks,    attr::owner,         attr::owner_group, attr::rawdev,
    attr::space_used, attr::time_access, attr::time_metadata, attr::time_modify, attr::mounted_on_fileid};
inline constexpr Bitmap statfs_attributes{attr::files_avail, attr::files_free, attr::files_total,
                                          attr::space_avail, attr::space_free, attr::space_total};
inline constexpr Bitmap fsinfo_attributes{
    attr::lease_time,    attr::maxfilesize,      attr::maxlink,      attr::maxname,
    attr::maxread,       attr::maxwrite,         attr::time_delta,   attr::suppattr_exclcreat,
    attr::clone_blksize, attr::change_attr_type, attr::xattr_support};

}  // namespace nfsrdma::nfs4
