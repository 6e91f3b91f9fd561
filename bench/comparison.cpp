// SPDX-License-Identifier: Apache-2.0
#include "bench/comparison.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace nfsrdma::bench {
namespace {

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void print_rates(const char* who, const std::vector<ReadRate>& rates, double scale, const char* unit) {
  auto middle = [&](double ReadRate::* field) {
    std::vector<double> v;
    for (const ReadRate& rate : rates) v.push_back(rate.*field);
    return median(std::move(v));
  };
  std::printf("  %-12s %8.2f %s  p50 %7.1f us  CPU us per READ: client %6.2f server %6.2f\n", who,
              middle(&ReadRate::reads_per_s) * scale, unit, middle(&ReadRate::p50_us),
              middle(&ReadRate::client_cpu_us), middle(&ReadRate::server_cpu_us));
}

}  // namespace

Arguments parse_arguments(int argc, char** argv, int rounds, bool takes_crc) {
  Arguments a;
  a.rounds = rounds;
  for (int i = 1; i < argc; i++) {
    std::string word = argv[i];
    bool more = i + 1 < argc;
    if (takes_crc && word == "--crc") {
      a.crc = true;
    } else if (more && word == "--seconds") {
      a.load.seconds = std::atof(argv[++i]);
    } else if (more && word == "--only") {
      a.only = argv[++i];
    } else if (more && word == "--rounds") {
      a.rounds = std::max(1, std::atoi(argv[++i]));
    } else if (more && word == "--spin") {
      a.load.spin_us = static_cast<uint32_t>(std::atoi(argv[++i]));
    } else {
      std::fprintf(stderr, "usage: %s [--seconds S] [--rounds N] [--spin US]%s [--only PART_OF_A_ROW]\n",
                   std::filesystem::path(argv[0]).filename().c_str(), takes_crc ? " [--crc]" : "");
      std::exit(2);
    }
  }
  return a;
}

void Comparison::add(const ReadRate& bare, const ReadRate& own) {
  bare_.push_back(bare);
  own_.push_back(own);
  ratio_.push_back(own.reads_per_s / bare.reads_per_s);
  cpu_ratio_.push_back((bare.client_cpu_us + bare.server_cpu_us) / (own.client_cpu_us + own.server_cpu_us));
}

void Comparison::print(const char* row, const ReadLoad& load, const char* own_name, const std::string& more) const {
  const bool bulk = load.read_bytes >= 65536;
  const double scale = bulk ? static_cast<double>(load.read_bytes) / 1e9 : 1e-3;
  const char* unit = bulk ? "GB/s" : "k/s";
  std::printf("%s\n", row);
  print_rates("bare", bare_, scale, unit);
  print_rates(own_name, own_, scale, unit);
  auto [least, most] = std::minmax_element(ratio_.begin(), ratio_.end());
  std::printf("  ratio %.2f (%.2f to %.2f), by CPU time %.2f%s\n", median(ratio_), *least, *most, median(cpu_ratio_),
              more.c_str());
  std::fflush(stdout);
}

}  // namespace nfsrdma::bench
