// SPDX-License-Identifier: Apache-2.0
#include "privileges.hpp"

#include <sys/capability.h>

#include <cerrno>
#include <cstring>

#include "log.hpp"

namespace nfsrdma::fuse {

void drop_privileges() {
  constexpr cap_value_t kept[] = {CAP_IPC_LOCK, CAP_NET_BIND_SERVICE, CAP_SYS_PTRACE};
  cap_t now = cap_get_proc();
  cap_t wanted = cap_init();
  if (now && wanted) {
    for (cap_value_t value : kept) {
      cap_flag_value_t permitted = CAP_CLEAR;
      if (cap_get_flag(now, value, CAP_PERMITTED, &permitted) != 0 || permitted != CAP_SET) continue;
      cap_set_flag(wanted, CAP_PERMITTED, 1, &value, CAP_SET);
      cap_set_flag(wanted, CAP_EFFECTIVE, 1, &value, CAP_SET);
    }
    if (cap_set_proc(wanted) != 0) log(LogLevel::warn, "capabilities are kept: %s", strerror(errno));
  }
  if (now) cap_free(now);
  if (wanted) cap_free(wanted);
}

}  // namespace nfsrdma::fuse
