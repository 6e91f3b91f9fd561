// SPDX-License-Identifier: Apache-2.0
// Whole files in one direction, with several requests in flight. The payload lies in the mount's registered
// buffers from the wire to write(2), and from read(2) to the wire: it is copied nowhere between.
#pragma once

#include <cstdint>

#include "nfsrdma/mount.hpp"
#include "progress.hpp"

namespace cli {

// All of the file to fd, in order. Gives the number of bytes.
nfsrdma::Result<uint64_t> download(nfsrdma::Mount& mount, const nfsrdma::File& file, uint64_t size_hint_bytes,
                                   int fd, Progress& progress);
// What fd gives until its end, into the file from offset 0. Not yet synced.
nfsrdma::Result<uint64_t> upload(nfsrdma::Mount& mount, const nfsrdma::File& file, int fd,
                                 Progress& progress);

}  // namespace cli
