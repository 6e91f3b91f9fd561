// SPDX-License-Identifier: Apache-2.0
#include "nfsrdma/log.hpp"

#include <atomic>

#include "base/log.hpp"

namespace nfsrdma {
namespace {

std::atomic<LogSink> public_sink{nullptr};

void pass_on(base::LogLevel level, std::string_view room, std::string_view line) {
  if (LogSink sink = public_sink.load(std::memory_order_acquire))
    sink(static_cast<LogLevel>(level), room, line);
}

static_assert(static_cast<int>(LogLevel::off) == static_cast<int>(base::LogLevel::off));

}  // namespace

void set_log_sink(LogSink sink, LogLevel lowest) {
  public_sink.store(sink, std::memory_order_release);
  base::set_log(sink ? pass_on : nullptr, static_cast<base::LogLevel>(lowest));
}

}  // namespace nfsrdma
