// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "files.hpp"
#include "interrupt.hpp"
#include "report.hpp"

namespace cli {

int run_cat(const Call& call) {
  catch_interrupts();
  int code = exit_done;
  for (const std::string& url : call.many) {
    auto target = parse_target(call, url);
    if (!target) return report(call, url, target.error());
    auto session = Session::open(*target);
    if (!session) return report(call, url, session.error());
    auto entry = session->resolve(target->path);
    nfsrdma::Result<uint64_t> copied =
        entry ? copy_to_fd(*session, *entry, STDOUT_FILENO, last_name(target->path)) : entry.error();
    if (copied) continue;
    if (copied.error().errno_value() == EPIPE) return exit_refused;
    code = report(call, url, copied.error());
  }
  return code;
}

}  // namespace cli
