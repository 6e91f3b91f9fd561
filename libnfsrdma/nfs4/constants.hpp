// SPDX-License-Identifier: Apache-2.0
// Numbers of NFSv4.1 (RFC 8881, RFC 5662), NFSv4.2 (RFC 7862) and extended attributes (RFC 8276).
#pragma once

#include <cstddef>
#include <cstdint>

namespace nfsrdma::nfs4 {

inline constexpr uint32_t program = 100003;
inline constexpr uint32_t program_version = 4;
inline constexpr uint32_t procedure_null = 0;
inline constexpr uint32_t procedure_compound = 1;
inline constexpr uint32_t callback_version = 1;
inline constexpr uint32_t procedure_cb_null = 0;
inline constexpr uint32_t procedure_cb_compound = 1;

// Limits: of the XDR description where it has one, ours where it leaves an item unbounded.
inline constexpr uint32_t file_handle_bytes_max = 128;
inline constexpr uint32_t verifier_bytes = 8;
inline constexpr uint32_t session_id_bytes = 16;
inline constexpr uint32_t stateid_other_bytes = 12;
inline constexpr uint32_t opaque_bytes_max = 1024;  // NFS4_OPAQUE_LIMIT: owners, scope, server owner
inline constexpr uint32_t tag_bytes_max = 1024;
inline constexpr uint32_t component_bytes_max = 4096;  // servers bound names tighter: attribute maxname
inline constexpr uint32_t link_text_bytes_max = 65536;
inline constexpr uint32_t principal_bytes_max = 1024;  // owner, group and ACE "who" strings
inline constexpr uint32_t bitmap_words_max = 8;
inline constexpr uint32_t attribute_bytes_max = 1 << 20;
inline constexpr uint32_t data_bytes_max = 1 << 26;
inline constexpr uint32_t compound_ops_max = 1024;
inline constexpr uint32_t dir_entries_max = 1 << 20;
inline constexpr uint32_t ace_count_max = 8192;
inline constexpr uint32_t fs_locations_max = 1024;
inline constexpr uint32_t path_components_max = 1024;
inline constexpr uint32_t stateid_count_max = 4096;
inline constexpr uint32_t secinfo_count_max = 64;
inline constexpr uint32_t oid_bytes_max = 1024;
inline constexpr uint32_t sec_parms_max = 16;
inline constexpr uint32_t machine_name_bytes_max = 255;
inline constexpr uint32_t auth_sys_gids_max = 16;
inline constexpr uint32_t referring_lists_max = 64;
inline constexpr uint32_t referring_calls_max = 1024;
inline constexpr uint32_t xattr_name_bytes_max = 4096;
inline constexpr uint32_t xattr_value_bytes_max = 1 << 20;
inline constexpr uint32_t xattr_names_max = 1 << 16;
inline constexpr uint64_t length_to_end = UINT64_MAX;

enum class Op : uint32_t {
  access = 3,
  close = 4,
  commit = 5,
  create = 6,
  delegpurge = 7,
  delegreturn = 8,
  getattr = 9,
  getfh = 10,
  link = 11,
  lock = 12,
  lockt = 13,
  locku = 14,
  lookup = 15,
  lookupp = 16,
  nverify = 17,
  open = 18,
  openattr = 19,
  open_confirm = 20,
  open_downgrade = 21,
  putfh = 22,
  putpubfh = 23,
  putrootfh = 24,
  read = 25,
  readdir = 26,
  readlink = 27,
  remove = 28,
  rename = 29,
  renew = 30,
  restorefh = 31,
  savefh = 32,
  secinfo = 33,
  setattr = 34,
  setclientid = 35,
  setclientid_confirm = 36,
  verify = 37,
  write = 38,
  release_lockowner = 39,
  backchannel_ctl = 40,
  bind_conn_to_session = 41,
  exchange_id = 42,
  create_session = 43,
  destroy_session = 44,
  free_stateid = 45,
  get_dir_delegation = 46,
  getdeviceinfo = 47,
  getdevicelist = 48,
  layoutcommit = 49,
  layoutget = 50,
  layoutreturn = 51,
  secinfo_no_name = 52,
  sequence = 53,
  set_ssv = 54,
  test_stateid = 55,
  want_delegation = 56,
  destroy_clientid = 57,
  reclaim_complete = 58,
  allocate = 59,
  copy = 60,
  copy_notify = 61,
  deallocate = 62,
  io_advise = 63,
  layouterror = 64,
  layoutstats = 65,
  offload_cancel = 66,
  offload_status = 67,
  read_plus = 68,
  seek = 69,
  write_same = 70,
  clone = 71,
  getxattr = 72,
  setxattr = 73,
  listxattrs = 74,
  removexattr = 75,
  illegal = 10044,
};
const char* to_string(Op op);

enum class CbOp : uint32_t {
  getattr = 3,
  recall = 4,
  layoutrecall = 5,
  notify = 6,
  push_deleg = 7,
  recall_any = 8,
  recallable_obj_avail = 9,
  recall_slot = 10,
  sequence = 11,
  wants_cancelled = 12,
  notify_lock = 13,
  notify_deviceid = 14,
  offload = 15,
  illegal = 10044,
};
const char* to_string(CbOp op);

// nfsstat4.
enum class Status : uint32_t {
  ok = 0,
  perm = 1,
  noent = 2,
  io = 5,
  nxio = 6,
  access = 13,
  exist = 17,
  xdev = 18,
  notdir = 20,
  isdir = 21,
  inval = 22,
  fbig = 27,
  nospc = 28,
  rofs = 30,
  mlink = 31,
  nametoolong = 63,
  notempty = 66,
  dquot = 69,
  stale = 70,
  badhandle = 10001,
  bad_cookie = 10003,
  notsupp = 10004,
  toosmall = 10005,
  serverfault = 10006,
  badtype = 10007,
  delay = 10008,
  same = 10009,
  denied = 10010,
  expired = 10011,
  locked = 10012,
  grace = 10013,
  fhexpired = 10014,
  share_denied = 10015,
  wrongsec = 10016,
  clid_inuse = 10017,
  resource = 10018,
  moved = 10019,
  nofilehandle = 10020,
  minor_vers_mismatch = 10021,
  stale_clientid = 10022,
  stale_stateid = 10023,
  old_stateid = 10024,
  bad_stateid = 10025,
  bad_seqid = 10026,
  not_same = 10027,
  lock_range = 10028,
  symlink = 10029,
  restorefh = 10030,
  lease_moved = 10031,
  attrnotsupp = 10032,
  no_grace = 10033,
  reclaim_bad = 10034,
  reclaim_conflict = 10035,
  badxdr = 10036,
  locks_held = 10037,
  openmode = 10038,
  badowner = 10039,
  badchar = 10040,
  badname = 10041,
  bad_range = 10042,
  lock_notsupp = 10043,
  op_illegal = 10044,
  deadlock = 10045,
  file_open = 10046,
  admin_revoked = 10047,
  cb_path_down = 10048,
  badiomode = 10049,
  badlayout = 10050,
  bad_session_digest = 10051,
  badsession = 10052,
  badslot = 10053,
  complete_already = 10054,
  conn_not_bound_to_session = 10055,
  deleg_already_wanted = 10056,
  back_chan_busy = 10057,
  layouttrylater = 10058,
  layoutunavailable = 10059,
  nomatching_layout = 10060,
  recallconflict = 10061,
  unknown_layouttype = 10062,
  seq_misordered = 10063,
  sequence_pos = 10064,
  req_too_big = 10065,
  rep_too_big = 10066,
  rep_too_big_to_cache = 10067,
  retry_uncached_rep = 10068,
  unsafe_compound = 10069,
  too_many_ops = 10070,
  op_not_in_session = 10071,
  hash_alg_unsupp = 10072,
  clientid_busy = 10074,
  pnfs_io_hole = 10075,
  seq_false_retry = 10076,
  bad_high_slot = 10077,
  deadsession = 10078,
  encr_alg_unsupp = 10079,
  pnfs_no_layout = 10080,
  not_only_op = 10081,
  wrong_cred = 10082,
  wrong_type = 10083,
  dirdeleg_unavail = 10084,
  reject_deleg = 10085,
  returnconflict = 10086,
  deleg_revoked = 10087,
  partner_notsupp = 10088,
  partner_no_auth = 10089,
  union_notsupp = 10090,
  offload_denied = 10091,
  wrong_lfs = 10092,
  badlabel = 10093,
  offload_no_reqs = 10094,
  noxattr = 10095,
  xattr2big = 10096,
};
// The name without NFS4ERR_ ("NOENT"), or "UNKNOWN" for a number that no specification has.
const char* to_string(Status status);

enum class FileType : uint32_t {
  regular = 1,
  directory = 2,
  block = 3,
  character = 4,
  symlink = 5,
  socket = 6,
  fifo = 7,
  attribute_directory = 8,
  named_attribute = 9,
};

// ACCESS bits.
namespace access_bit {
inline constexpr uint32_t read = 0x1, lookup = 0x2, modify = 0x4, extend = 0x8, remove = 0x10, execute = 0x20,
                          xattr_read = 0x40, xattr_write = 0x80, xattr_list = 0x100;
}

// EXCHANGE_ID flags.
namespace exchange_flag {
inline constexpr uint32_t supp_moved_refer = 0x1, supp_moved_migr = 0x2, supp_fence_ops = 0x4,
                          bind_princ_stateid = 0x100, use_non_pnfs = 0x10000, use_pnfs_mds = 0x20000,
                          use_pnfs_ds = 0x40000, upd_confirmed_rec_a = 0x40000000, confirmed_r = 0x80000000;
}

// CREATE_SESSION flags.
namespace create_session_flag {
inline constexpr uint32_t persist = 1, conn_back_chan = 2, conn_rdma = 4;
}

// SEQUENCE sr_status_flags.
namespace sequence_flag {
inline constexpr uint32_t cb_path_down = 0x1, cb_gss_contexts_expiring = 0x2, cb_gss_contexts_expired = 0x4,
                          expired_all_state_revoked = 0x8, expired_some_state_revoked = 0x10,
                          admin_state_revoked = 0x20, recallable_state_revoked = 0x40, lease_moved = 0x80,
                          restart_reclaim_needed = 0x100, cb_path_down_session = 0x200,
                          backchannel_fault = 0x400, devid_changed = 0x800, devid_deleted = 0x1000;
}

// OPEN share_access, its delegation wants, share_deny and result flags.
namespace share {
inline constexpr uint32_t access_read = 1, access_write = 2, access_both = 3, access_mask = 3;
inline constexpr uint32_t want_no_preference = 0, want_read_deleg = 0x100, want_write_deleg = 0x200,
                          want_any_deleg = 0x300, want_no_deleg = 0x400, want_cancel = 0x500,
                          want_mask = 0xff00, signal_when_available = 0x10000,
                          push_when_uncontended = 0x20000, want_deleg_timestamps = 0x100000,
                          want_open_xor_delegation = 0x200000;
inline constexpr uint32_t deny_none = 0, deny_read = 1, deny_write = 2, deny_both = 3;
}  // namespace share
namespace open_result_flag {
inline constexpr uint32_t confirm = 0x2, locktype_posix = 0x4, preserve_unlinked = 0x8,
                          no_open_stateid = 0x10, may_notify_lock = 0x20;
}

// fattr4 attribute numbers.
namespace attr {
inline constexpr uint32_t supported_attrs = 0, type = 1, fh_expire_type = 2, change = 3, size = 4,
                          link_support = 5, symlink_support = 6, named_attr = 7, fsid = 8, unique_handles = 9,
                          lease_time = 10, rdattr_error = 11, acl = 12, aclsupport = 13, archive = 14,
                          cansettime = 15, case_insensitive = 16, case_preserving = 17, chown_restricted = 18,
                          filehandle = 19, fileid = 20, files_avail = 21, files_free = 22, files_total = 23,
                          fs_locations = 24, hidden = 25, homogeneous = 26, maxfilesize = 27, maxlink = 28,
                          maxname = 29, maxread = 30, maxwrite = 31, mimetype = 32, mode = 33, no_trunc = 34,
                          numlinks = 35, owner = 36, owner_group = 37, quota_avail_hard = 38,
                          quota_avail_soft = 39, quota_used = 40, rawdev = 41, space_avail = 42,
                          space_free = 43, space_total = 44, space_used = 45, system = 46, time_access = 47,
                          time_access_set = 48, time_backup = 49, time_create = 50, time_delta = 51,
                          time_metadata = 52, time_modify = 53, time_modify_set = 54, mounted_on_fileid = 55,
                          dir_notif_delay = 56, dirent_notif_delay = 57, dacl = 58, sacl = 59,
                          change_policy = 60, fs_status = 61, fs_layout_types = 62, layout_hint = 63,
                          layout_types = 64, layout_blksize = 65, layout_alignment = 66,
                          fs_locations_info = 67, mdsthreshold = 68, retention_get = 69, retention_set = 70,
                          retentevt_get = 71, retentevt_set = 72, retention_hold = 73, mode_set_masked = 74,
                          suppattr_exclcreat = 75, fs_charset_cap = 76, clone_blksize = 77, space_freed = 78,
                          change_attr_type = 79, sec_label = 80, mode_umask = 81, xattr_support = 82,
                          offline = 83, time_deleg_access = 84, time_deleg_modify = 85, open_arguments = 86;
}
inline constexpr uint32_t attribute_number_end = 87;

}  // namespace nfsrdma::nfs4
