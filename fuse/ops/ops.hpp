// SPDX-License-Identifier: Apache-2.0
// The operations that libfuse decodes. Each entry function runs on a loop, never blocks, and leaves a coroutine
// behind that answers.
#pragma once

#include <string>

#include "request.hpp"
#include "task.hpp"

namespace nfsrdma::fuse {

const fuse_lowlevel_ops& operations();

namespace ops {

void init(void* channel, fuse_conn_info* connection);

void lookup(fuse_req_t, fuse_ino_t parent, const char* name);
void forget(fuse_req_t, fuse_ino_t, uint64_t lookups);
void forget_multi(fuse_req_t, size_t count, fuse_forget_data* list);

void getattr(fuse_req_t, fuse_ino_t, fuse_file_info*);
void setattr(fuse_req_t, fuse_ino_t, struct stat*, int which, fuse_file_info*);
void access(fuse_req_t, fuse_ino_t, int mask);
void statfs(fuse_req_t, fuse_ino_t);

void readlink(fuse_req_t, fuse_ino_t);
void mknod(fuse_req_t, fuse_ino_t parent, const char* name, mode_t, dev_t);
void mkdir(fuse_req_t, fuse_ino_t parent, const char* name, mode_t);
void symlink(fuse_req_t, const char* target, fuse_ino_t parent, const char* name);
void link(fuse_req_t, fuse_ino_t, fuse_ino_t parent, const char* name);

void unlink(fuse_req_t, fuse_ino_t parent, const char* name);
void rmdir(fuse_req_t, fuse_ino_t parent, const char* name);
void rename(fuse_req_t, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
            unsigned flags);

void open(fuse_req_t, fuse_ino_t, fuse_file_info*);
void create(fuse_req_t, fuse_ino_t parent, const char* name, mode_t, fuse_file_info*);
void flush(fuse_req_t, fuse_ino_t, fuse_file_info*);
void fsync(fuse_req_t, fuse_ino_t, int data_only, fuse_file_info*);
void release(fuse_req_t, fuse_ino_t, fuse_file_info*);

void opendir(fuse_req_t, fuse_ino_t, fuse_file_info*);
void readdir(fuse_req_t, fuse_ino_t, size_t, off_t, fuse_file_info*);
void readdirplus(fuse_req_t, fuse_ino_t, size_t, off_t, fuse_file_info*);
void releasedir(fuse_req_t, fuse_ino_t, fuse_file_info*);
void fsyncdir(fuse_req_t, fuse_ino_t, int data_only, fuse_file_info*);

}  // namespace ops

// The inode of a number from the kernel; empty after having answered: ESTALE for one that was forgotten, EPERM in the
// control directory, where nothing can be changed.
InodePtr inode_or_answer(Request& request, uint64_t id);
// The directory in which a name is made, removed or renamed; the control directory's own name is not for that.
InodePtr directory_or_answer(Request& request, uint64_t id, std::string_view name);

// Answers with an entry and counts its lookup, if the kernel takes it.
void answer_entry(Request& request, const Inode& directory, const Result<Entry>& entry);

// ---- ops/silly.cpp: files that were unlinked while open ---------------------------------------------------------

// One open handle (or open under way) more, or less; the last one removes the silly name.
void add_open(Filesystem& fs, Inode& inode);
Task<int> drop_open(Channel& channel, InodePtr inode);

// Before `name` of `directory` loses its file: if this mount has the file open and no other name holds it, it gets a
// silly name. keep: the name itself stays until a rename replaces it. Gives the inode, which counts one open more
// until settle_silly, or nothing when there is nothing to do; an error when the file could not be kept.
struct Kept {
  InodePtr inode;
  SillyName silly;
  bool linked = false;  // by LINK: the old name is still there
};
Task<Result<std::optional<Kept>>> keep_open_file(Request& request, InodePtr directory, std::string name,
                                                 Entry victim, bool keep);
// The name is gone (done), or the operation failed and the silly name goes back.
Task<int> settle_silly(Request& request, Kept kept, std::string name, bool done);

}  // namespace nfsrdma::fuse
