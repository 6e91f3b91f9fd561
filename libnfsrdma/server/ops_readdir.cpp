// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "server/attributes.hpp"
#include "server/ops.hpp"

namespace nfsrdma::server {
namespace {

constexpr size_t attributes_bytes_max = 1024;

// Encodes entries into a scratch buffer as long as they fit.
class EntryWriter final : public DirSink {
 public:
  EntryWriter(const ServerContext& context, const nfs4::Bitmap& mask, base::Bytes scratch)
      : encoder_(scratch), mask_(mask) {
    values_.set_constants(context);
  }

  void set_filesystem(const FilesystemAttributes& attributes) { values_.set_filesystem(attributes); }

  bool take(const DirEntryView& entry) override {
    nfs4::DirEntry out;
    out.cookie = entry.cookie;
    out.name = entry.name;
    std::array<std::byte, attributes_bytes_max> scratch;
    if (entry.status != Status::ok) {
      if (!mask_.test(nfs4::attr::rdattr_error)) {
        failed_ = entry.status;
        return false;
      }
      // RFC 8881, 5.8.1.12: one entry without attributes does not spoil the listing.
      values_.values.rdattr_error = entry.status;
      if (!nfs4::encode_fattr({nfs4::attr::rdattr_error}, values_.values, scratch, out.attributes)) return false;
      values_.values.rdattr_error = Status::ok;
    } else {
      if (entry.attributes) values_.set_object(*entry.attributes, *entry.handle);
      if (!nfs4::encode_fattr(mask_, values_.values, scratch, out.attributes)) return false;
    }
    const xdr::Encoder::Mark before = encoder_.mark();
    encoder_(uint32_t{1}, out);
    if (!encoder_.ok()) {
      encoder_.rollback(before);
      full_ = true;
      return false;
    }
    ++count_;
    return true;
  }

  Status failed() const { return failed_; }
  bool full() const { return full_; }
  uint32_t count() const { return count_; }
  xdr::Chain<nfs4::DirEntry> entries() const {
    return xdr::Chain<nfs4::DirEntry>::from_encoded(encoder_.written(), count_);
  }

 private:
  xdr::Encoder encoder_;
  nfs4::Bitmap mask_;
  AttributeValues values_;
  Status failed_ = Status::ok;
  bool full_ = false;
  uint32_t count_ = 0;
};

Status check(const Compound& c, const nfs4::ReaddirArgs& args) {
  if (!c.current) return Status::nofilehandle;
  if (c.current->type() != FileType::directory) return Status::notdir;
  if (args.cookie == 1 || args.cookie == 2) return Status::bad_cookie;
  if (args.mask.test(nfs4::attr::time_access_set) || args.mask.test(nfs4::attr::time_modify_set)) return Status::inval;
  return args.maxcount_bytes > nfs4::readdir_overhead_bytes ? Status::ok : Status::toosmall;
}

}  // namespace

Task<Status> op_readdir(Compound& c, const nfs4::ReaddirArgs& args) {
  if (Status s = check(c, args); s != Status::ok) co_return s;
  uint32_t room = c.stream_room(nfs4::readdir_overhead_bytes);
  uint32_t bytes = std::min({args.maxcount_bytes - nfs4::readdir_overhead_bytes, room, c.context.data_bytes_max});
  mem::Buffer buffer = c.pool.try_borrow(bytes);
  if (!buffer) co_return Status::delay;
  nfs4::Bitmap mask = args.mask & attributes_readable;
  EntryWriter writer(c.context, mask, buffer.bytes().first(bytes));
  if (wants_filesystem(mask)) {
    Answer<FilesystemAttributes> filesystem = co_await c.store.filesystem(c.current);
    if (!filesystem.ok()) co_return filesystem.status;
    writer.set_filesystem(*filesystem);
  }
  Answer<DirDone> done = co_await c.store.readdir(c.caller, c.current, args.cookie, !mask.none(), writer);
  if (!done.ok()) co_return done.status;
  if (writer.count() == 0 && !done->eof) {
    if (!writer.full()) co_return writer.failed() != Status::ok ? writer.failed() : Status::serverfault;
    // Not even one entry: the client's limit, or what the session leaves.
    co_return bytes == room ? c.too_big() : Status::toosmall;
  }
  nfs4::ReaddirResult result;
  result.entries = writer.entries();
  result.eof = done->eof;
  co_return c.answer(result);
}

}  // namespace nfsrdma::server
