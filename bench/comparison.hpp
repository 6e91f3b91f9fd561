// SPDX-License-Identifier: Apache-2.0
// What the benchmarks that set something against the bare frames have in common: arguments, medians, rows.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/bare_framed.hpp"
#include "nfsrdma/error.hpp"

namespace nfsrdma::bench {

// The value, or the bench's end with the reason.
template <class T>
T take(Result<T> result) {
  if (!result) must(false, result.error().text().c_str());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

struct Arguments {
  ReadLoad load;
  int rounds = 5;
  bool crc = false;
  std::string only;  // part of a row's name

  bool wants(const std::string& row) const { return row.find(only) != std::string::npos; }
};

// --seconds S, --rounds N, --spin US, --only PART and, where it is taken, --crc. Anything else ends the bench with its
// usage and exit code 2.
Arguments parse_arguments(int argc, char** argv, int rounds, bool takes_crc);

// Runs made in turn: the bare frames, and what is judged by them.
class Comparison {
 public:
  void add(const ReadRate& bare, const ReadRate& own);
  // Medians, their ratio with its range, and `more` at the end of that line.
  void print(const char* row, const ReadLoad& load, const char* own_name, const std::string& more = "") const;

 private:
  std::vector<ReadRate> bare_, own_;
  std::vector<double> ratio_, cpu_ratio_;
};

}  // namespace nfsrdma::bench
