// SPDX-License-Identifier: Apache-2.0
#include "nfs4/constants.hpp"

#include <algorithm>
#include <iterator>

namespace nfsrdma::nfs4 {
namespace {

struct Name {
  uint32_t number;
  const char* text;
};

// Ascending, for the binary search below.
constexpr Name op_names[] = {
    {3, "ACCESS"}, {4, "CLOSE"}, {5, "COMMIT"}, {6, "CREATE"}, {7, "DELEGPURGE"}, {8, "DELEGRETURN"},
    {9, "GETATTR"}, {10, "GETFH"}, {11, "LINK"}, {12, "LOCK"}, {13, "LOCKT"}, {14, "LOCKU"}, {15, "LOOKUP"},
    {16, "LOOKUPP"}, {17, "NVERIFY"}, {18, "OPEN"}, {19, "OPENATTR"}, {20, "OPEN_CONFIRM"},
    {21, "OPEN_DOWNGRADE"}, {22, "PUTFH"}, {23, "PUTPUBFH"}, {24, "PUTROOTFH"}, {25, "READ"},
    {26, "READDIR"}, {27, "READLINK"}, {28, "REMOVE"}, {29, "RENAME"}, {30, "RENEW"}, {31, "RESTOREFH"},
    {32, "SAVEFH"}, {33, "SECINFO"}, {34, "SETATTR"}, {35, "SETCLIENTID"}, {36, "SETCLIENTID_CONFIRM"},
    {37, "VERIFY"}, {38, "WRITE"}, {39, "RELEASE_LOCKOWNER"}, {40, "BACKCHANNEL_CTL"},
    {41, "BIND_CONN_TO_SESSION"}, {42, "EXCHANGE_ID"}, {43, "CREATE_SESSION"}, {44, "DESTROY_SESSION"},
    {45, "FREE_STATEID"}, {46, "GET_DIR_DELEGATION"}, {47, "GETDEVICEINFO"}, {48, "GETDEVICELIST"},
    {49, "LAYOUTCOMMIT"}, {50, "LAYOUTGET"}, {51, "LAYOUTRETURN"}, {52, "SECINFO_NO_NAME"},
    {53, "SEQUENCE"}, {54, "SET_SSV"}, {55, "TEST_STATEID"}, {56, "WANT_DELEGATION"},
    {57, "DESTROY_CLIENTID"}, {58, "RECLAIM_COMPLETE"}, {59, "ALLOCATE"}, {60, "COPY"}, {61, "COPY_NOTIFY"},
    {62, "DEALLOCATE"}, {63, "IO_ADVISE"}, {64, "LAYOUTERROR"}, {65, "LAYOUTSTATS"}, {66, "OFFLOAD_CANCEL"},
    {67, "OFFLOAD_STATUS"}, {68, "READ_PLUS"}, {69, "SEEK"}, {70, "WRITE_SAME"}, {71, "CLONE"},
    {72, "GETXATTR"}, {73, "SETXATTR"}, {74, "LISTXATTRS"}, {75, "REMOVEXATTR"}, {10044, "ILLEGAL"},
};

// Ascending, for the binary search below.
constexpr Name cb_op_names[] = {
    {3, "CB_GETATTR"}, {4, "CB_RECALL"}, {5, "CB_LAYOUTRECALL"}, {6, "CB_NOTIFY"}, {7, "CB_PUSH_DELEG"},
    {8, "CB_RECALL_ANY"}, {9, "CB_RECALLABLE_OBJ_AVAIL"}, {10, "CB_RECALL_SLOT"}, {11, "CB_SEQUENCE"},
    {12, "CB_WANTS_CANCELLED"}, {13, "CB_NOTIFY_LOCK"}, {14, "CB_NOTIFY_DEVICEID"}, {15, "CB_OFFLOAD"},
    {10044, "CB_ILLEGAL"},
};

// Ascending, for the binary search below.
constexpr Name status_names[] = {
    {0, "OK"}, {1, "PERM"}, {2, "NOENT"}, {5, "IO"}, {6, "NXIO"}, {13, "ACCESS"}, {17, "EXIST"},
    {18, "XDEV"}, {20, "NOTDIR"}, {21, "ISDIR"}, {22, "INVAL"}, {27, "FBIG"}, {28, "NOSPC"}, {30, "ROFS"},
    {31, "MLINK"}, {63, "NAMETOOLONG"}, {66, "NOTEMPTY"}, {69, "DQUOT"}, {70, "STALE"},
    {10001, "BADHANDLE"}, {10003, "BAD_COOKIE"}, {10004, "NOTSUPP"}, {10005, "TOOSMALL"},
    {10006, "SERVERFAULT"}, {10007, "BADTYPE"}, {10008, "DELAY"}, {10009, "SAME"}, {10010, "DENIED"},
    {10011, "EXPIRED"}, {10012, "LOCKED"}, {10013, "GRACE"}, {10014, "FHEXPIRED"}, {10015, "SHARE_DENIED"},
    {10016, "WRONGSEC"}, {10017, "CLID_INUSE"}, {10018, "RESOURCE"}, {10019, "MOVED"},
    {10020, "NOFILEHANDLE"}, {10021, "MINOR_VERS_MISMATCH"}, {10022, "STALE_CLIENTID"},
    {10023, "STALE_STATEID"}, {10024, "OLD_STATEID"}, {10025, "BAD_STATEID"}, {10026, "BAD_SEQID"},
    {10027, "NOT_SAME"}, {10028, "LOCK_RANGE"}, {10029, "SYMLINK"}, {10030, "RESTOREFH"},
    {10031, "LEASE_MOVED"}, {10032, "ATTRNOTSUPP"}, {10033, "NO_GRACE"}, {10034, "RECLAIM_BAD"},
    {10035, "RECLAIM_CONFLICT"}, {10036, "BADXDR"}, {10037, "LOCKS_HELD"}, {10038, "OPENMODE"},
    {10039, "BADOWNER"}, {10040, "BADCHAR"}, {10041, "BADNAME"}, {10042, "BAD_RANGE"},
    {10043, "LOCK_NOTSUPP"}, {10044, "OP_ILLEGAL"}, {10045, "DEADLOCK"}, {10046, "FILE_OPEN"},
    {10047, "ADMIN_REVOKED"}, {10048, "CB_PATH_DOWN"}, {10049, "BADIOMODE"}, {10050, "BADLAYOUT"},
    {10051, "BAD_SESSION_DIGEST"}, {10052, "BADSESSION"}, {10053, "BADSLOT"}, {10054, "COMPLETE_ALREADY"},
    {10055, "CONN_NOT_BOUND_TO_SESSION"}, {10056, "DELEG_ALREADY_WANTED"}, {10057, "BACK_CHAN_BUSY"},
    {10058, "LAYOUTTRYLATER"}, {10059, "LAYOUTUNAVAILABLE"}, {10060, "NOMATCHING_LAYOUT"},
    {10061, "RECALLCONFLICT"}, {10062, "UNKNOWN_LAYOUTTYPE"}, {10063, "SEQ_MISORDERED"},
    {10064, "SEQUENCE_POS"}, {10065, "REQ_TOO_BIG"}, {10066, "REP_TOO_BIG"},
    {10067, "REP_TOO_BIG_TO_CACHE"}, {10068, "RETRY_UNCACHED_REP"}, {10069, "UNSAFE_COMPOUND"},
    {10070, "TOO_MANY_OPS"}, {10071, "OP_NOT_IN_SESSION"}, {10072, "HASH_ALG_UNSUPP"},
    {10074, "CLIENTID_BUSY"}, {10075, "PNFS_IO_HOLE"}, {10076, "SEQ_FALSE_RETRY"}, {10077, "BAD_HIGH_SLOT"},
    {10078, "DEADSESSION"}, {10079, "ENCR_ALG_UNSUPP"}, {10080, "PNFS_NO_LAYOUT"}, {10081, "NOT_ONLY_OP"},
    {10082, "WRONG_CRED"}, {10083, "WRONG_TYPE"}, {10084, "DIRDELEG_UNAVAIL"}, {10085, "REJECT_DELEG"},
    {10086, "RETURNCONFLICT"}, {10087, "DELEG_REVOKED"}, {10088, "PARTNER_NOTSUPP"},
    {10089, "PARTNER_NO_AUTH"}, {10090, "UNION_NOTSUPP"}, {10091, "OFFLOAD_DENIED"}, {10092, "WRONG_LFS"},
    {10093, "BADLABEL"}, {10094, "OFFLOAD_NO_REQS"}, {10095, "NOXATTR"}, {10096, "XATTR2BIG"},
};

template <size_t N>
const char* find(const Name (&table)[N], uint32_t number, const char* otherwise) {
  const Name* at = std::lower_bound(std::begin(table), std::end(table), number,
                                    [](const Name& name, uint32_t value) { return name.number < value; });
  return at != std::end(table) && at->number == number ? at->text : otherwise;
}

}  // namespace

const char* to_string(Op op) { return find(op_names, static_cast<uint32_t>(op), "UNKNOWN_OP"); }
const char* to_string(CbOp op) { return find(cb_op_names, static_cast<uint32_t>(op), "UNKNOWN_CB_OP"); }
const char* to_string(Status status) { return find(status_names, static_cast<uint32_t>(status), "UNKNOWN"); }

}  // namespace nfsrdma::nfs4
