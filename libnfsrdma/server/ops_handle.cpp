// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "server/names.hpp"
#include "server/ops.hpp"

namespace nfsrdma::server {
namespace {

constexpr nfs4::SecinfoEntry flavors[] = {{static_cast<uint32_t>(rpc::AuthFlavor::sys), {}, 0, 0}};

}  // namespace

Status op_putrootfh(Compound& c) {
  c.set_current(c.store.root());
  return c.answer(nfs4::PutrootfhResult{});
}

Status op_putpubfh(Compound& c) {
  c.set_current(c.store.root());
  return c.answer(nfs4::PutpubfhResult{});
}

Task<Status> op_putfh(Compound& c, const nfs4::PutfhArgs& args) {
  Answer<ObjectRef> object = co_await c.store.resolve(args.fh);
  if (!object.ok()) co_return object.status;
  c.set_current(std::move(*object));
  co_return c.answer(nfs4::PutfhResult{});
}

Status op_getfh(Compound& c) {
  if (!c.current) return Status::nofilehandle;
  nfs4::GetfhResult result;
  result.fh = c.current->handle();
  return c.answer(result);
}

Status op_savefh(Compound& c) {
  if (!c.current) return Status::nofilehandle;
  c.saved = c.current;
  c.saved_stateid = c.current_stateid;
  return c.answer(nfs4::SavefhResult{});
}

Status op_restorefh(Compound& c) {
  if (!c.saved) return Status::restorefh;
  c.current = c.saved;
  c.current_stateid = c.saved_stateid;
  return c.answer(nfs4::RestorefhResult{});
}

Task<Status> op_lookup(Compound& c, const nfs4::LookupArgs& args) {
  if (!c.current) co_return Status::nofilehandle;
  if (Status s = check_name(args.name); s != Status::ok) co_return s;
  Answer<ObjectRef> object = co_await c.store.lookup(c.caller, c.current, args.name);
  if (!object.ok()) co_return object.status;
  c.set_current(std::move(*object));
  co_return c.answer(nfs4::LookupResult{});
}

Task<Status> op_lookupp(Compound& c) {
  if (!c.current) co_return Status::nofilehandle;
  Answer<ObjectRef> object = co_await c.store.parent(c.caller, c.current);
  if (!object.ok()) co_return object.status;
  c.set_current(std::move(*object));
  co_return c.answer(nfs4::LookuppResult{});
}

Task<Status> op_readlink(Compound& c) {
  if (!c.current) co_return Status::nofilehandle;
  if (c.current->type() != FileType::symlink) co_return Status::wrong_type;
  Answer<std::string> text = co_await c.store.readlink(c.caller, c.current);
  if (!text.ok()) co_return text.status;
  auto length = static_cast<uint32_t>(text->size());
  nfs4::ReadlinkResult result;
  if (c.has_payload()) {
    result.text = xdr::DdpItem::of(base::bytes_of(*text));
    co_return c.answer(result);
  }
  if (length > c.payload_room(4)) co_return c.too_big();
  ReadData data;
  data.buffer = c.pool.try_borrow(length);
  if (!data.buffer) co_return Status::delay;
  std::memcpy(data.buffer.data(), text->data(), length);
  data.length = length;
  data.piece = data.buffer.sge(0, length);
  result.text = xdr::DdpItem::elsewhere(length);
  if (Status s = c.answer(result); s != Status::ok) co_return s;
  c.set_payload(std::move(data));
  co_return Status::ok;
}

Task<Status> op_secinfo(Compound& c, const nfs4::SecinfoArgs& args) {
  if (!c.current) co_return Status::nofilehandle;
  if (Status s = check_name(args.name); s != Status::ok) co_return s;
  Answer<ObjectRef> object = co_await c.store.lookup(c.caller, c.current, args.name);
  if (!object.ok()) co_return object.status;
  nfs4::SecinfoResult result;
  result.entries = std::span<const nfs4::SecinfoEntry>(flavors);
  Status status = c.answer(result);
  // RFC 8881, 2.6.3.1.1.8: the current file handle is consumed.
  if (status == Status::ok) c.set_current({});
  co_return status;
}

Task<Status> op_secinfo_no_name(Compound& c, const nfs4::SecinfoNoNameArgs& args) {
  if (!c.current) co_return Status::nofilehandle;
  if (args.style != nfs4::SecinfoStyle::current_fh && args.style != nfs4::SecinfoStyle::parent) co_return Status::inval;
  if (args.style == nfs4::SecinfoStyle::parent) {
    Answer<ObjectRef> object = co_await c.store.parent(c.caller, c.current);
    if (!object.ok()) co_return object.status;
  }
  nfs4::SecinfoNoNameResult result;
  result.entries = std::span<const nfs4::SecinfoEntry>(flavors);
  Status status = c.answer(result);
  if (status == Status::ok) c.set_current({});
  co_return status;
}

}  // namespace nfsrdma::server
