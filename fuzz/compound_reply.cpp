// SPDX-License-Identifier: Apache-2.0
// COMPOUND replies as a client reads them. Input: a byte with flags and the number of operations sent, their numbers, and
// the reply's body. Whatever it holds, reading ends, and what was decoded stays inside the input.
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "nfs4/attributes.hpp"
#include "nfs4/compound.hpp"
#include "nfs4/op_table.hpp"

using namespace nfsrdma;

namespace {

bool inside(std::span<const std::byte> part, std::span<const std::byte> whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

// What a client does with a decoded result: follows its views.
template <class R>
void use(const R& result, std::span<const std::byte> input) {
  if constexpr (std::is_same_v<R, nfs4::GetattrResult>) {
    if (!inside(result.attributes.values, input)) std::abort();
    nfs4::Attributes attributes;
    (void)nfs4::decode_fattr(result.attributes, attributes);
  } else if constexpr (std::is_same_v<R, nfs4::ReaddirResult>) {
    for (const nfs4::DirEntry& entry : result.entries) {
      if (!inside(base::bytes_of(entry.name), input)) std::abort();
      nfs4::Attributes attributes;
      (void)nfs4::decode_fattr(entry.attributes, attributes);
    }
  } else if constexpr (std::is_same_v<R, nfs4::ReadResult>) {
    if (!inside(result.data.inline_bytes, input)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  size_t count = data[0] & 15;
  if (size < 1 + count) return 0;
  std::span<const std::byte> body(reinterpret_cast<const std::byte*>(data) + 1 + count, size - 1 - count);
  std::optional<xdr::OutOfBand> placed;
  if (data[0] & 0x80) placed = xdr::OutOfBand{(data[0] & 0x70u) << 4, xdr::position_any};
  nfs4::CompoundReader reader(body, static_cast<uint32_t>(count), placed);
  for (size_t i = 0; i < count; i++) {
    bool good = false;
    bool known = nfs4::visit_op(static_cast<nfs4::Op>(data[1 + i]), [&]<class Args>() {
      typename Args::Result result{};
      good = reader.next(result);
      if (good) use(result, body);
    });
    if (!known || !good) break;
  }
  if (reader.finish() && (reader.malformed() || reader.status() != nfs4::Status::ok)) std::abort();
  if (reader.malformed() && !reader.complaint()) std::abort();
  return 0;
}
