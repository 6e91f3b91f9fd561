// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "record.hpp"
#include "report.hpp"
#include "session.hpp"

namespace cli {

using namespace nfsrdma;

int run_ping(const Call& call) {
  auto target = parse_target(call, call.first);
  if (!target) return report(call, call.first, target.error());
  const std::vector<ProbeStep> steps = Mount::probe(target->options);
  size_t width = 0;
  for (const ProbeStep& step : steps) width = std::max(width, step.name.size());
  std::vector<Record> records;
  for (const ProbeStep& step : steps) {
    if (call.json) {
      Record record{{"step", step.name}, {"ok", step.ok}, {"time_us", step.time_us}};
      add_text(record, "detail", step.detail);
      records.push_back(std::move(record));
      continue;
    }
    std::printf("%-*s  %-6s  %10.3f ms  %s\n", static_cast<int>(width), step.name.c_str(),
                step.ok ? "ok" : "FAILED", static_cast<double>(step.time_us) / 1000,
                for_stdout(step.detail).c_str());
  }
  if (call.json) print_json(records);
  const bool all_ok =
      !steps.empty() && std::all_of(steps.begin(), steps.end(), [](const ProbeStep& s) { return s.ok; });
  // The server was reached, and said no to the path.
  const bool reached = !steps.empty() && steps.back().name == "root";
  return finish_stdout(call, all_ok ? exit_done : reached ? exit_refused : exit_no_connection);
}

}  // namespace cli
