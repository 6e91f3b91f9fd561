// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "client/mount_impl.hpp"

namespace nfsrdma {

using nfs4::Op;
using session::Repeat;
using session::SmallCompound;

namespace {

constexpr uint32_t page_bytes_min = 4096;
// What a READDIR reply carries besides its entries: RPC and COMPOUND headers, SEQUENCE, PUTFH.
constexpr uint32_t reply_overhead_bytes = 512;

// A name that a caller may safely append to a path. What the server sends is not trusted to be one.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

}  // namespace

// A server that cannot use the reply chunk offered (too large for it) is asked again for less.
io::Task<Result<DirectoryPage>> Mount::Impl::read_directory(Node directory, uint64_t cookie, uint64_t verifier,
                                                            uint32_t bytes_max, bool with_attributes,
                                                            Credentials who) {
  uint32_t most = server_->info().response_bytes_max - reply_overhead_bytes;
  uint32_t count = std::clamp(bytes_max, page_bytes_min, std::max(page_bytes_min, std::min(most, (1u << 20) - 4096u)));
  nfs4::ReaddirArgs args;
  args.cookie = cookie;
  base::store_be(args.cookie_verifier.data(), verifier);
  args.mask = nfs4::Bitmap{nfs4::attr::rdattr_error, nfs4::attr::fsid, nfs4::attr::fileid, nfs4::attr::type};
  if (with_attributes) args.mask = args.mask | nfs4::stat_attributes | nfs4::Bitmap{nfs4::attr::filehandle};
  for (;;) {
    args.dircount_bytes = args.maxcount_bytes = count;
    SmallCompound c(Op::readdir, Repeat::freely, who.identity()->wire);
    c.add_sequence();
    c.add(nfs4::PutfhArgs{handle_of(directory)});
    c.add(args);
    auto ran = co_await run(c);
    if (!ran && ran.error().errno_value() == EMSGSIZE && count > page_bytes_min) {
      count = std::max(page_bytes_min, count / 4);
      continue;
    }
    if (!ran) co_return ran.error();
    nfs4::ReaddirResult got;
    if (!c.reader().next<nfs4::PutfhResult>() || !c.reader().next(got)) {
      if (c.reader().op_status() == nfs4::Status::toosmall && count < most) {
        count = std::min(most, count * 4);
        continue;
      }
      co_return failure(c, "READDIR");
    }
    DirectoryPage page;
    page.eof = got.eof;
    page.verifier = base::load_be<uint64_t>(got.cookie_verifier.data());
    page.entries.reserve(got.entries.size());
    for (const nfs4::DirEntry& e : got.entries) {
      if (!is_plain_name(e.name)) {
        base::log(base::LogLevel::warn, "client", "a directory entry whose name could lead elsewhere was left out");
        continue;
      }
      DirectoryEntry& out = page.entries.emplace_back();
      out.name = std::string(e.name);
      out.cookie = e.cookie;
      nfs4::Attributes raw;
      if (!client::decode_stat(e.attributes, raw, out.attributes)) {
        out.attributes = Attributes{};
        continue;
      }
      if (raw.has(nfs4::attr::filehandle) && !raw.filehandle.empty())
        out.node = Node(nodes_->get(raw.filehandle, raw.fsid, raw.fileid, out.attributes.type));
    }
    co_return page;
  }
}

}  // namespace nfsrdma
