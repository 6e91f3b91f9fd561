// SPDX-License-Identifier: Apache-2.0
// usage: read_file URL FILE: the start of FILE below URL, placed by RDMA straight into memory of ours, to stdout.
#include <nfsrdma/mount.hpp>

#include <cstdio>
#include <vector>

int fail(const nfsrdma::Error& error) {
  std::fprintf(stderr, "%s\n", error.text().c_str());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: read_file URL FILE\n", stderr), 2;
  auto options = nfsrdma::parse_url(argv[1]);
  if (!options) return fail(options.error());
  auto connected = nfsrdma::Mount::connect(*options);
  if (!connected) return fail(connected.error());
  nfsrdma::Mount& mount = **connected;
  const nfsrdma::Credentials& who = mount.default_credentials();

  std::vector<char> memory(4 << 20);
  auto region = mount.register_memory(memory.data(), memory.size());
  if (!region) return fail(region.error());
  auto found = mount.resolve(argv[2], true, who);
  if (!found) return fail(found.error());
  auto opened = mount.open(found->node, nfsrdma::open_read, who);
  if (!opened) return fail(opened.error());
  auto read = mount.read(opened->file, 0, region->all());
  if (!read) return fail(read.error());
  std::fwrite(memory.data(), 1, read->length, stdout);
  if (auto closed = mount.close(opened->file); !closed) return fail(closed.error());
}
