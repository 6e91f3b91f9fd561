// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>

#include "base/log.hpp"
#include "program.hpp"
#include "serve.hpp"

namespace {

void to_stderr(nfsrdma::base::LogLevel, std::string_view room, std::string_view line) {
  std::fprintf(stderr, "nfsrdma-serve: %.*s%s%s\n", static_cast<int>(room.size()), room.data(),
               room.empty() ? "" : ": ", nfsrdma::program::printable(line).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  using namespace nfsrdma;
  program::hold_standard_descriptors();
  serve::Options options;
  serve::Parsed parsed = serve::parse_options(argc, argv, options);
  if (parsed != serve::Parsed::run) return parsed == serve::Parsed::done ? program::finish_stdout("nfsrdma-serve") : 2;
  base::set_log(to_stderr, options.verbosity == 0   ? base::LogLevel::warn
                           : options.verbosity == 1 ? base::LogLevel::info
                                                    : base::LogLevel::trace);
  // Before the first other thread: they inherit the mask, and only this one waits for the signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  // A client that writes past "ulimit -f" shall hear of it, not end the server.
  std::signal(SIGXFSZ, SIG_IGN);
  Result<void> served = serve::serve(options);
  if (served) return 0;
  program::print_error("nfsrdma-serve", served.error().text());
  return served.error().origin() == ErrorOrigin::usage ? 2 : 1;
}
