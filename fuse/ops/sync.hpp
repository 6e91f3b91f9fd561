// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "handles.hpp"
#include "task.hpp"

namespace nfsrdma::fuse {

class Filesystem;

// Everything that this mount has written to the file, through any handle, is on stable storage: 0. Else an errno that
// this handle has not been told yet.
Task<int> sync_file(Filesystem& fs, std::shared_ptr<OpenFile> file);

// Before the size is cut: acknowledged data that could be sent again after a server's restart must not grow the file
// afterwards. An error stays with the handle that wrote.
Task<int> sync_inode(Filesystem& fs, InodePtr inode);

}  // namespace nfsrdma::fuse
