// SPDX-License-Identifier: Apache-2.0
#include "nfs4/attributes.hpp"

#include <algorithm>

#include "xdr/printer.hpp"

namespace nfsrdma::nfs4 {
namespace {

// Names as "user@domain" are bounded by login and host name limits; the protocol itself sets no bound.
constexpr uint32_t name_bound = 4 + 512;
constexpr uint32_t bitmap_bound = 4 + 4 * bitmap_words_max;
constexpr uint32_t no_bound = attribute_bytes_max;
constexpr uint32_t layout_types_bound = 4 + 4 * 16;

constexpr AttributeInfo get(const char* name, uint32_t bytes) { return {name, bytes, true, true, false}; }
constexpr AttributeInfo both(const char* name, uint32_t bytes) { return {name, bytes, true, true, true}; }
constexpr AttributeInfo set_only(const char* name, uint32_t bytes) {
  return {name, bytes, true, false, true};
}
constexpr AttributeInfo untyped(const char* name, bool readable, bool settable) {
  return {name, no_bound, false, readable, settable};
}

constexpr AttributeInfo table[attribute_number_end] = {
    get("supported_attrs", bitmap_bound),
    get("type", 4),
    get("fh_expire_type", 4),
    get("change", 8),
    both("size", 8),
    get("link_support", 4),
    get("symlink_support", 4),
    get("named_attr", 4),
    get("fsid", 16),
    get("unique_handles", 4),
    get("lease_time", 4),
    get("rdattr_error", 4),
    both("acl", no_bound),
    get("aclsupport", 4),
    both("archive", 4),
    get("cansettime", 4),
    get("case_insensitive", 4),
    get("case_preserving", 4),
    get("chown_restricted", 4),
    get("filehandle", 4 + file_handle_bytes_max),
    get("fileid", 8),
    get("files_avail", 8),
    get("files_free", 8),
    get("files_total", 8),
    get("fs_locations", no_bound),
    both("hidden", 4),
    get("homogeneous", 4),
    get("maxfilesize", 8),
    get("maxlink", 4),
    get("maxname", 4),
    get("maxread", 8),
    get("maxwrite", 8),
    both("mimetype", name_bound),
    both("mode", 4),
    get("no_trunc", 4),
    get("numlinks", 4),
    both("owner", name_bound),
    both("owner_group", name_bound),
    get("quota_avail_hard", 8),
    get("quota_avail_soft", 8),
    get("quota_used", 8),
    get("rawdev", 8),
    get("space_avail", 8),
    get("space_free", 8),
    get("space_total", 8),
    get("space_used", 8),
    both("system", 4),
    get("time_access", 12),
    set_only("time_access_set", 16),
    both("time_backup", 12),
    both("time_create", 12),
    get("time_delta", 12),
    get("time_metadata", 12),
    get("time_modify", 12),
    set_only("time_modify_set", 16),
    get("mounted_on_fileid", 8),
    get("dir_notif_delay", 12),
    get("dirent_notif_delay", 12),
    both("dacl", no_bound),
    both("sacl", no_bound),
    get("change_policy", 16),
    untyped("fs_status", true, false),
    get("fs_layout_types", layout_types_bound),
    untyped("layout_hint", false, true),
    get("layout_types", layout_types_bound),
    get("layout_blksize", 4),
    get("layout_alignment", 4),
    untyped("fs_locations_info", true, false),
    untyped("mdsthreshold", true, false),
    untyped("retention_get", true, false),
    untyped("retention_set", false, true),
    untyped("retentevt_get", true, false),
    untyped("retentevt_set", false, true),
    untyped("retention_hold", true, true),
    set_only("mode_set_masked", 8),
    get("suppattr_exclcreat", bitmap_bound),
    get("fs_charset_cap", 4),
    get("clone_blksize", 4),
    get("space_freed", 8),
    get("change_attr_type", 4),
    both("sec_label", no_bound),
    set_only("mode_umask", 8),
    get("xattr_support", 4),
    get("offline", 4),
    set_only("time_deleg_access", 12),
    set_only("time_deleg_modify", 12),
    untyped("open_arguments", true, false),
};

// clang-format off
// The value of one attribute, by number; false when it has no type here. One function a mask word.
template <class A>
bool describe_word0(A& ar, uint32_t number, Attributes& v) {
  using namespace attr;
  switch (number) {
    case supported_attrs: ar(v.supported_attrs); return true;
    case type: ar(v.type); return true;
    case fh_expire_type: ar(v.fh_expire_type); return true;
    case change: ar(v.change); return true;
    case size: ar(v.size); return true;
    case link_support: ar(v.link_support); return true;
    case symlink_support: ar(v.symlink_support); return true;
    case named_attr: ar(v.named_attr); return true;
    case fsid: ar(v.fsid); return true;
    case unique_handles: ar(v.unique_handles); return true;
    case lease_time: ar(v.lease_time_s); return true;
    case rdattr_error: ar(v.rdattr_error); return true;
    case acl: ar(xdr::bounded(v.acl, ace_count_max)); return true;
    case aclsupport: ar(v.aclsupport); return true;
    case archive: ar(v.archive); return true;
    case cansettime: ar(v.cansettime); return true;
    case case_insensitive: ar(v.case_insensitive); return true;
    case case_preserving: ar(v.case_preserving); return true;
    case chown_restricted: ar(v.chown_restricted); return true;
    case filehandle: ar(v.filehandle); return true;
    case fileid: ar(v.fileid); return true;
    case files_avail: ar(v.files_avail); return true;
    case files_free: ar(v.files_free); return true;
    case files_total: ar(v.files_total); return true;
    case fs_locations: ar(v.fs_locations); return true;
    case hidden: ar(v.hidden); return true;
    case homogeneous: ar(v.homogeneous); return true;
    case maxfilesize: ar(v.maxfilesize); return true;
    case maxlink: ar(v.maxlink); return true;
    case maxname: ar(v.maxname); return true;
    case maxread: ar(v.maxread); return true;
    case maxwrite: ar(v.maxwrite); return true;
    default: return false;
  }
}

template <class A>
bool describe_word1(A& ar, uint32_t number, Attributes& v) {
  using namespace attr;
  switch (number) {
    case mimetype: ar(xdr::bounded(v.mimetype, principal_bytes_max)); return true;
    case mode: ar(v.mode); return true;
    case no_trunc: ar(v.no_trunc); return true;
    case numlinks: ar(v.numlinks); return true;
    case owner: ar(xdr::bounded(v.owner, principal_bytes_max)); return true;
    case owner_group: ar(xdr::bounded(v.owner_group, principal_bytes_max)); return true;
    case quota_avail_hard: ar(v.quota_avail_hard); return true;
    case quota_avail_soft: ar(v.quota_avail_soft); return true;
    case quota_used: ar(v.quota_used); return true;
    case rawdev: ar(v.rawdev); return true;
    case space_avail: ar(v.space_avail); return true;
    case space_free: ar(v.space_free); return true;
    case space_total: ar(v.space_total); return true;
    case space_used: ar(v.space_used); return true;
    case system: ar(v.system); return true;
    case time_access: ar(v.time_access); return true;
    case time_access_set: ar(v.time_access_set); return true;
    case time_backup: ar(v.time_backup); return true;
    case time_create: ar(v.time_create); return true;
    case time_delta: ar(v.time_delta); return true;
    case time_metadata: ar(v.time_metadata); return true;
    case time_modify: ar(v.time_modify); return true;
    case time_modify_set: ar(v.time_modify_set); return true;
    case mounted_on_fileid: ar(v.mounted_on_fileid); return true;
    case dir_notif_delay: ar(v.dir_notif_delay); return true;
    case dirent_notif_delay: ar(v.dirent_notif_delay); return true;
    case dacl: ar(v.dacl); return true;
    case sacl: ar(v.sacl); return true;
    case change_policy: ar(v.change_policy); return true;
    case fs_layout_types: ar(xdr::bounded(v.fs_layout_types, sec_parms_max)); return true;
    default: return false;
  }
}

template <class A>
bool describe_word2(A& ar, uint32_t number, Attributes& v) {
  using namespace attr;
  switch (number) {
    case layout_types: ar(xdr::bounded(v.layout_types, sec_parms_max)); return true;
    case layout_blksize: ar(v.layout_blksize); return true;
    case layout_alignment: ar(v.layout_alignment); return true;
    case mode_set_masked: ar(v.mode_set_masked); return true;
    case suppattr_exclcreat: ar(v.suppattr_exclcreat); return true;
    case fs_charset_cap: ar(v.fs_charset_cap); return true;
    case clone_blksize: ar(v.clone_blksize); return true;
    case space_freed: ar(v.space_freed); return true;
    case change_attr_type: ar(v.change_attr_type); return true;
    case sec_label: ar(v.sec_label); return true;
    case mode_umask: ar(v.mode_umask); return true;
    case xattr_support: ar(v.xattr_support); return true;
    case offline: ar(v.offline); return true;
    case time_deleg_access: ar(v.time_deleg_access); return true;
    case time_deleg_modify: ar(v.time_deleg_modify); return true;
    default: return false;
  }
}
// clang-format on

template <class A>
bool describe_attribute(A& ar, uint32_t number, Attributes& v) {
  if (number < 32) return describe_word0(ar, number, v);
  if (number < 64) return describe_word1(ar, number, v);
  return describe_word2(ar, number, v);
}

// Calls f(number) for each bit in ascending order until f returns false.
template <class F>
void for_each_bit(const Bitmap& mask, F&& f) {
  for (uint32_t w = 0; w < bitmap_words_max; ++w) {
    for (uint32_t bits = mask.words[w]; bits != 0; bits &= bits - 1) {
      if (!f(w * 32 + static_cast<uint32_t>(__builtin_ctz(bits)))) return;
    }
  }
}

}  // namespace

const AttributeInfo* attribute_info(uint32_t number) {
  return number < attribute_number_end ? &table[number] : nullptr;
}

uint64_t fattr_bytes_max(const Bitmap& mask) {
  // Servers answer with as many mask words as their attributes need, at least the three of minor version 2.
  uint64_t bytes = 4 + 4 * std::max(mask.count, 3u) + 4;
  for_each_bit(mask, [&](uint32_t number) {
    const AttributeInfo* info = attribute_info(number);
    bytes += info ? info->bytes_max : attribute_bytes_max;
    return true;
  });
  return bytes;
}

FattrRead decode_fattr(const Fattr& in, Attributes& out) {
  out.present = Bitmap{};
  xdr::Decoder decoder(in.values);
  FattrRead result = FattrRead::complete;
  for_each_bit(in.mask, [&](uint32_t number) {
    if (!describe_attribute(decoder, number, out)) {
      result = FattrRead::unknown;
      return false;
    }
    if (!decoder.ok()) {
      result = FattrRead::malformed;
      return false;
    }
    out.present.set(number);
    return true;
  });
  if (result == FattrRead::complete && !decoder.at_end()) return FattrRead::malformed;
  return result;
}

bool encode_fattr(const Bitmap& mask, const Attributes& values, std::span<std::byte> scratch, Fattr& out) {
  xdr::Encoder encoder(scratch);
  bool typed = true;
  for_each_bit(mask, [&](uint32_t number) {
    typed = describe_attribute(encoder, number, const_cast<Attributes&>(values));
    return typed && encoder.ok();
  });
  out.mask = mask;
  out.mask.trim();
  out.values = encoder.written();
  return typed && encoder.ok();
}

namespace {

// Passes an attribute's name on to the printer: its description gives the value alone.
class NamedPrinter {
 public:
  NamedPrinter(xdr::Printer& printer, const char* name) : printer_(printer), name_(name) {}
  template <class T>
  void operator()(T&& value) {
    printer_.field(name_, value);
  }

 private:
  xdr::Printer& printer_;
  const char* name_;
};

}  // namespace

void print_to(xdr::Printer& printer, const Fattr& fattr) {
  Attributes values;
  const FattrRead read = decode_fattr(fattr, values);
  printer.literal("{");
  for_each_bit(values.present, [&](uint32_t number) {
    NamedPrinter named(printer, table[number].name);
    return describe_attribute(named, number, values);
  });
  printer.literal(read == FattrRead::complete ? "}" : " ?}");
}

namespace {

template <class F>
void print_bits(xdr::Printer& printer, const Bitmap& mask, F&& name_of) {
  std::string text = "<";
  for_each_bit(mask, [&](uint32_t number) {
    if (text.size() > 1) text += ',';
    text += name_of(number);
    return true;
  });
  printer.literal(text + '>');
}

}  // namespace

void print_to(xdr::Printer& printer, const Bitmap& mask) {
  print_bits(printer, mask, [](uint32_t number) {
    const AttributeInfo* info = attribute_info(number);
    return info ? std::string(info->name) : std::to_string(number);
  });
}

void print_to(xdr::Printer& printer, const BitSet& bits) {
  print_bits(printer, bits, [](uint32_t number) { return std::to_string(number); });
}

}  // namespace nfsrdma::nfs4
