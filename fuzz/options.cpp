// SPDX-License-Identifier: Apache-2.0
// The first byte chooses: bit 0 sloppy, bit 1 the rest is a mount source instead of an option list.
#include <cstdint>
#include <cstdlib>

#include "nfsrdma/options.hpp"

using namespace nfsrdma;

namespace {

void check_error(const Error& error) {
  if (error.origin() != ErrorOrigin::usage || error.text().empty() || error.text().size() > 1000)
    std::abort();
  for (char c : error.text())
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  Options options;
  auto result = data[0] & 2 ? apply_source(options, text) : apply_option_list(options, text, data[0] & 1);
  if (!result) {
    check_error(result.error());
    if (options != Options{}) std::abort();  // a refused list changes nothing
    return 0;
  }
  if (options.nconnect < 1 || options.nconnect > 16) std::abort();
  if (options.rsize_bytes < 1024 || options.rsize_bytes > 1u << 20 || options.rsize_bytes % 1024)
    std::abort();
  if (options.wsize_bytes < 1024 || options.wsize_bytes > 1u << 20 || options.wsize_bytes % 1024)
    std::abort();
  if (options.inline_bytes < 1024 || options.inline_bytes % 1024 || options.credits == 0) std::abort();
  if (options.acregmin_s > options.acregmax_s || options.acdirmin_s > options.acdirmax_s) std::abort();
  if (options.client_id.size() > 1024 || options.connect_timeout_ms == 0) std::abort();
  return 0;
}
