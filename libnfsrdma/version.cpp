// SPDX-License-Identifier: Apache-2.0
#include "nfsrdma/version.hpp"

#include "nfsrdma_commit.h"

#define NFSRDMA_TEXT_OF(x) #x
#define NFSRDMA_TEXT(x) NFSRDMA_TEXT_OF(x)
#define NFSRDMA_VERSION \
  NFSRDMA_TEXT(NFSRDMA_VERSION_MAJOR) "." NFSRDMA_TEXT(NFSRDMA_VERSION_MINOR) "." NFSRDMA_TEXT(NFSRDMA_VERSION_PATCH)

namespace nfsrdma {

const char* version() { return NFSRDMA_VERSION; }

const char* version_with_commit() {
  return sizeof(NFSRDMA_COMMIT) > 1 ? NFSRDMA_VERSION " (" NFSRDMA_COMMIT ")" : NFSRDMA_VERSION;
}

}  // namespace nfsrdma
