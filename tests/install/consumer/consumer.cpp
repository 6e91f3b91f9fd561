// SPDX-License-Identifier: Apache-2.0
// A program outside the tree: prints the version of the library that it runs with.
#include <nfsrdma/version.hpp>

#include <cstdio>

int main() {
  std::puts(nfsrdma::version());
  return nfsrdma::version()[0] - '0' != NFSRDMA_VERSION_MAJOR;
}
