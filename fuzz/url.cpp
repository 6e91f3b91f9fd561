// SPDX-License-Identifier: Apache-2.0
// What parses is written again and parsed again, to the same.
#include <cstdint>
#include <cstdlib>

#include "nfsrdma/options.hpp"

using namespace nfsrdma;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto first = parse_url({reinterpret_cast<const char*>(data), size});
  if (!first) {
    const Error& error = first.error();
    if (error.origin() != ErrorOrigin::usage || error.text().empty() || error.text().size() > 1000)
      std::abort();
    for (char c : error.text())
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) std::abort();
    return 0;
  }
  if (first->host.empty() || first->path.empty() || first->path.find('\0') != std::string::npos) std::abort();
  std::string url = format_url(*first);
  auto second = parse_url(url);
  if (!second || format_url(*second) != url) std::abort();
  if (second->host != first->host || second->path != first->path) std::abort();
  if (second->effective_port() != first->effective_port() || second->nconnect != first->nconnect)
    std::abort();
  return 0;
}
