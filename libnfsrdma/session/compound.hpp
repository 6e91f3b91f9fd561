// SPDX-License-Identifier: Apache-2.0
// One COMPOUND of the session, from its arguments to its results. Lives in the frame of the coroutine that runs it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "nfs4/compound.hpp"
#include "nfs4/op_table.hpp"
#include "rpc/transport.hpp"

namespace nfsrdma::session {

// What may be done when it is unknown whether the server executed the call.
enum class Repeat : uint8_t {
  freely,        // reading, or writing the same bytes again
  exactly_once,  // the server keeps the reply (sa_cachethis); without it the caller must find out
};

struct SlotLease {
  uint32_t slot = 0;
  uint32_t sequence = 0;
  uint64_t generation = 0;  // of the session that the slot belongs to
};

class Compound : public rpc::Call {
 public:
  using Bytes = base::Bytes;

  // storage holds the encoded arguments and must stay in place. main_op names the compound in statistics and errors.
  Compound(Bytes storage, nfs4::Op main_op, Repeat repeat, const rpc::Credential& who, uint32_t minor_version = 1,
           xdr::Form call_form = xdr::Form::whole, xdr::Form reply_form = xdr::Form::whole)
      : storage_(storage),
        builder_(storage, minor_version, call_form, reply_form),
        main_op_(main_op),
        repeat_(repeat) {
    credential = &who;
  }
  // First, for every compound that belongs to a session.
  void add_sequence() {
    nfs4::SequenceArgs args;
    args.cache_this = repeat_ == Repeat::exactly_once;
    builder_.add(args);
    sequenced_ = true;
  }
  template <class Args>
  void add(const Args& args) {
    builder_.add(args);
  }
  // The last operation added is the one that must not happen twice: a later one's DELAY repeats nothing.
  void mark_main() { main_index_ = builder_.op_count() - 1; }
  // Ends building. EMSGSIZE when an argument is above its limit.
  Result<void> seal();
  // Writes slot and sequence id of this transmission into the sealed arguments.
  void stamp(const nfs4::SessionId& session, const SlotLease& lease, uint32_t highest_slot);

  nfs4::Op main_op() const { return main_op_; }
  Repeat repeat() const { return repeat_; }
  bool sequenced() const { return sequenced_; }

  // Set before run(), where wanted.
  bool privileged = false;                      // recovery: may pass while the gate is shut
  base::TimeNs give_up_at_ns = base::never_ns;  // no retry after this
  // Bookkeeping of the session while it runs.
  void* owner = nullptr;                        // the Exchange that waits for it, until completion
  class Channel* carried_by = nullptr;          // of the last transmission
  uint64_t connection = 0;                      // which of that channel's connections it was
  bool unsendable = false;                      // not_sent for a reason of its own, the connection being up
  base::TimeNs first_sent_at_ns = 0, sent_at_ns = 0;
  uint32_t transmissions = 0;
  uint64_t state_epoch = 0;                     // of the client id under which it was executed
  uint32_t op_count() const { return builder_.op_count(); }
  uint32_t whole_request_bytes() const { return builder_.whole_size(); }
  std::optional<uint32_t> main_index() const { return main_index_; }

  // Results, valid from a reply until the next co_await of the coroutine that runs the compound.
  void open_reply();
  nfs4::CompoundReader& reader() { return *reader_; }
  // Keeps a copy: the coroutine goes on on another thread than the reply came in.
  void keep_results();

 private:
  Bytes storage_;
  nfs4::CompoundBuilder builder_;
  std::optional<nfs4::CompoundReader> reader_;
  std::vector<std::byte> kept_;
  std::optional<uint32_t> main_index_;
  nfs4::Op main_op_;
  Repeat repeat_;
  bool sequenced_ = false;
};

// Compounds with room for their arguments. Small: file handles and numbers; Large: names, attributes, link texts.
template <size_t N>
struct CompoundStorage {
  std::array<std::byte, N> bytes;
};
template <size_t N>
class SizedCompound : private CompoundStorage<N>, public Compound {
 public:
  template <class... Rest>
  SizedCompound(nfs4::Op main_op, Repeat repeat, const rpc::Credential& who, Rest... rest)
      : Compound(base::Bytes(CompoundStorage<N>::bytes), main_op, repeat, who, rest...) {}
};
using SmallCompound = SizedCompound<512>;
using LargeCompound = SizedCompound<6144>;

}  // namespace nfsrdma::session
