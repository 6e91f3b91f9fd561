// SPDX-License-Identifier: Apache-2.0
#include "nfsrdma/version.hpp"

#include <cstdio>

#include "record.hpp"
#include "report.hpp"

namespace cli {

int run_version(const Call& call) {
  if (call.json)
    print_json(Record{{"version", std::string(nfsrdma::version())},
                      {"build", std::string(nfsrdma::version_with_commit())}});
  else
    std::printf("nfsrdma %s\n", nfsrdma::version_with_commit());
  return finish_stdout(call, exit_done);
}

}  // namespace cli
