// SPDX-License-Identifier: Apache-2.0
#include "session/compound.hpp"

#include <cerrno>

#include "base/log.hpp"

namespace nfsrdma::session {
namespace {

// COMPOUND4args: empty tag (4), minorversion (4), count (4); then argop (4), sa_sessionid (16), sa_sequenceid,
// sa_slotid, sa_highest_slotid (RFC 8881 sections 16.2 and 18.46).
constexpr size_t session_id_at = 16, sequence_at = 32, slot_at = 36, highest_at = 40;

}  // namespace

Result<void> Compound::seal() {
  args = builder_.finish();
  if (!builder_.ok())
    return Error(builder_.fault() == xdr::Fault::overflow ? ENAMETOOLONG : EINVAL, ErrorOrigin::usage,
                 base::text("%s: an argument is longer than the protocol allows", nfs4::to_string(main_op_)));
  if (builder_.ddp()) out.position = builder_.ddp()->position;
  uint64_t bound = builder_.reply_bytes_max();
  results_bytes_max = bound > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(bound);
  return {};
}

void Compound::stamp(const nfs4::SessionId& session, const SlotLease& lease, uint32_t highest_slot) {
  std::memcpy(storage_.data() + session_id_at, session.data(), session.size());
  base::store_be(storage_.data() + sequence_at, lease.sequence);
  base::store_be(storage_.data() + slot_at, lease.slot);
  base::store_be(storage_.data() + highest_at, highest_slot);
}

void Compound::open_reply() {
  std::optional<xdr::OutOfBand> placed;
  if (data_placed) placed = xdr::OutOfBand{data_length, xdr::position_any};
  reader_.emplace(results, builder_.op_count(), placed);
}

void Compound::keep_results() {
  kept_.assign(results.begin(), results.end());
  results = kept_;
}

}  // namespace nfsrdma::session
