// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace nfsrdma::server {

// A component as the kernel wants it. Longer ones were refused before they came here (names.hpp); cut, to be safe.
class CName {
 public:
  explicit CName(std::string_view name) {
    size_t n = std::min(name.size(), text_.size() - 1);
    std::copy_n(name.begin(), n, text_.begin());
    text_[n] = '\0';
  }
  const char* get() const { return text_.data(); }

 private:
  std::array<char, 256> text_;
};

}  // namespace nfsrdma::server
