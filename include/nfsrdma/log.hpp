// SPDX-License-Identifier: Apache-2.0
// Where the library's log lines go. Until a program asks for them they go nowhere.
#pragma once

#include <cstdint>
#include <string_view>

#include "nfsrdma/export.hpp"

namespace nfsrdma {

enum class LogLevel : uint8_t { trace, debug, info, warn, error, off };

// Called from any thread, several at a time; must not block for long nor call back into the library. `part` is the
// part of the library that speaks, e.g. "session"; the line has no newline.
using LogSink = void (*)(LogLevel, std::string_view part, std::string_view line);

// One sink per process, for lines of at least `lowest`; nullptr ends it. Any thread. File names and data appear below
// info only, keys and credentials never.
NFSRDMA_API void set_log_sink(LogSink sink, LogLevel lowest);

}  // namespace nfsrdma
