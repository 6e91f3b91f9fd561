// SPDX-License-Identifier: Apache-2.0
#include "interrupt.hpp"

#include <unistd.h>

#include <csignal>

namespace cli {
namespace {

constexpr unsigned grace_s = 3;
constexpr int exit_interrupted = 130;

volatile std::sig_atomic_t interrupted = 0;

void on_interrupt(int) {
  if (interrupted) _exit(exit_interrupted);
  interrupted = 1;
  alarm(grace_s);
}

void on_alarm(int) {
  constexpr char text[] =
      "nfsrdma: interrupted; the server does not answer, what was begun there may be left\n";
  [[maybe_unused]] ssize_t n = ::write(STDERR_FILENO, text, sizeof text - 1);
  _exit(exit_interrupted);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;  // without SA_RESTART, so that reading a terminal or pipe ends
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN)  // nohup(1) asks for more
    sigaction(SIGHUP, &action, nullptr);
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

bool is_interrupted() { return interrupted != 0; }

}  // namespace cli
