// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "server/attributes.hpp"
#include "server/ops.hpp"

namespace nfsrdma::server {
namespace {

// Every attribute that we know, with the largest owner strings.
constexpr size_t attributes_bytes_max = 1024;

bool write_only(const nfs4::Bitmap& mask) {
  return mask.test(nfs4::attr::time_access_set) || mask.test(nfs4::attr::time_modify_set);
}

}  // namespace

Task<Status> op_access(Compound& c, const nfs4::AccessArgs& args) {
  namespace bit = nfs4::access_bit;
  if (!c.current) co_return Status::nofilehandle;
  constexpr uint32_t known = bit::read | bit::lookup | bit::modify | bit::extend | bit::remove | bit::execute;
  if (args.access & ~(known | bit::xattr_read | bit::xattr_write | bit::xattr_list)) co_return Status::inval;
  uint32_t supported = c.current->type() == FileType::directory
                           ? bit::read | bit::lookup | bit::modify | bit::extend | bit::remove
                           : bit::read | bit::modify | bit::extend | bit::execute;
  nfs4::AccessResult result;
  result.supported = args.access & supported;
  Answer<uint32_t> granted = co_await c.store.access(c.caller, c.current, result.supported);
  if (!granted.ok()) co_return granted.status;
  result.access = *granted;
  co_return c.answer(result);
}

Task<Status> op_getattr(Compound& c, const nfs4::GetattrArgs& args) {
  if (!c.current) co_return Status::nofilehandle;
  if (write_only(args.mask)) co_return Status::inval;
  nfs4::Bitmap mask = args.mask & attributes_readable;
  AttributeValues values;
  if (Status s = co_await collect_attributes(c, c.current, mask, values); s != Status::ok) co_return s;
  std::array<std::byte, attributes_bytes_max> scratch;
  nfs4::GetattrResult result;
  if (!nfs4::encode_fattr(mask, values.values, scratch, result.attributes)) co_return Status::serverfault;
  co_return c.answer(result);
}

Task<Status> op_setattr(Compound& c, const nfs4::SetattrArgs& args) {
  if (!c.current) co_return Status::nofilehandle;
  SetAttributes what;
  if (Status s = read_settable(args.attributes, what); s != Status::ok) co_return s;
  constexpr uint32_t result_bytes = 16;
  if (Status s = c.need_room(result_bytes); s != Status::ok) co_return s;
  DataAccess access;
  Stateid stateid = c.resolve(args.stateid);
  if (what.has(SetAttributes::size)) {
    if (c.current->type() == FileType::directory) co_return Status::isdir;
    if (c.current->type() != FileType::regular) co_return Status::inval;
    Status s = c.state.data_access(c.client, c.current, stateid, Need::write, access);
    if (s != Status::ok) co_return s;
  }
  if (Status s = c.state.break_delegations(c.client.get(), c.current, true); s != Status::ok) co_return s;
  SetDone done = co_await c.store.set_attributes(c.caller, c.current, what, access.file);
  nfs4::SetattrResult result;
  result.attributes_set = set_mask(done.set, args.attributes.mask);
  if (done.status != Status::ok) co_return c.answer_failure(done.status, result);
  co_return c.answer(result);
}

Task<Status> op_verify(Compound& c, const nfs4::Fattr& wanted, bool same_wanted) {
  if (!c.current) co_return Status::nofilehandle;
  if (write_only(wanted.mask) || wanted.mask.test(nfs4::attr::rdattr_error)) co_return Status::inval;
  if (!(wanted.mask - attributes_readable).none()) co_return Status::attrnotsupp;
  AttributeValues values;
  if (Status s = co_await collect_attributes(c, c.current, wanted.mask, values); s != Status::ok) co_return s;
  std::array<std::byte, attributes_bytes_max> scratch;
  nfs4::Fattr ours;
  if (!nfs4::encode_fattr(wanted.mask, values.values, scratch, ours)) co_return Status::serverfault;
  bool same = ours.values.size() == wanted.values.size() &&
              std::memcmp(ours.values.data(), wanted.values.data(), ours.values.size()) == 0;
  if (same != same_wanted) co_return same ? Status::same : Status::not_same;
  co_return same_wanted ? c.answer(nfs4::VerifyResult{}) : c.answer(nfs4::NverifyResult{});
}

}  // namespace nfsrdma::server
