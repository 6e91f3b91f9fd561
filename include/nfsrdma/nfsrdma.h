/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface: files on an NFSv4.1 server over RDMA, without a mount.
 *
 * Results. A call that can fail returns an int or int64_t: 0 or a positive count, or a negative errno. The text behind
 * the last failure on this thread is nfsrdma_strerror(). Errors that every call on a context may give: -EINVAL (an
 * argument that cannot be), -ENOTCONN (not connected), -EDEADLK (a blocking call inside a callback), and what the
 * server says: -ENOENT, -EACCES, -EPERM, -EROFS, -ESTALE, -EIO and so on. Only others are named at a function.
 *
 * Threads. Any thread may use a context and its handles, several at a time, unless a function says otherwise.
 *
 * Two forms. nfsrdma_NAME() blocks until it is done. nfsrdma_NAME_async() takes the same arguments, a callback and a
 * pointer for it: it returns 0 and calls back exactly once, or returns a negative errno and never calls back.
 * Strings and structures given to it are copied; memory that it reads or writes, and where its results go, must stay
 * until the callback. Callbacks come on a thread of the library, which they must not block; or, if the context was
 * connected with NFSRDMA_CALLBACKS_BY_SERVICE, on the thread that calls nfsrdma_service().
 *
 * Ownership. What a function hands out belongs to the caller and has one function that ends it. Handles must be ended
 * before the context is. Values of enums and constants never change; structures that may grow begin with struct_size,
 * which the caller sets to sizeof the structure.
 */
#ifndef NFSRDMA_NFSRDMA_H
#define NFSRDMA_NFSRDMA_H

#include <stddef.h>
#include <stdint.h>

#include "nfsrdma/export.h"
#include "nfsrdma/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A connection to one export. */
typedef struct nfsrdma_ctx nfsrdma_ctx;
/* An open file. */
typedef struct nfsrdma_file nfsrdma_file;
/* A directory that is being read. */
typedef struct nfsrdma_dir nfsrdma_dir;
/* Registered memory of the caller. */
typedef struct nfsrdma_mem nfsrdma_mem;

/* result: what the blocking form would have returned. Inside the callback nfsrdma_strerror(ctx) tells of a failure. */
typedef void (*nfsrdma_callback)(nfsrdma_ctx *ctx, int64_t result, void *private_data);

/* ---- the library ------------------------------------------------------------------------------------------- */

/* The release that the program runs with: "0.1.0", static storage; and as NFSRDMA_VERSION_NUMBER. */
NFSRDMA_API const char *nfsrdma_version(void);
NFSRDMA_API uint32_t nfsrdma_version_number(void);

enum nfsrdma_log_level {
  NFSRDMA_LOG_TRACE = 0,
  NFSRDMA_LOG_DEBUG = 1,
  NFSRDMA_LOG_INFO = 2,
  NFSRDMA_LOG_WARNING = 3,
  NFSRDMA_LOG_ERROR = 4,
  NFSRDMA_LOG_OFF = 5
};

/* part: which part of the library speaks. Both texts end with the call. Any thread, several at a time; it must not
 * block for long nor call the library. */
typedef void (*nfsrdma_log_callback)(int level, const char *part, const char *line);

/* One callback per process, for lines of at least `lowest`; NULL ends it. */
NFSRDMA_API void nfsrdma_set_log(nfsrdma_log_callback callback, int lowest);

/* ---- connecting -------------------------------------------------------------------------------------------- */

enum nfsrdma_connect_flags {
  /* Callbacks wait until nfsrdma_service() is called; nfsrdma_get_fd() tells when. */
  NFSRDMA_CALLBACKS_BY_SERVICE = 1
};

/* What to connect to. NULL and 0 mean: as the URL and the list say, else the default. */
typedef struct nfsrdma_options {
  size_t struct_size;
  uint32_t flags;             /* nfsrdma_connect_flags */
  uint32_t nconnect;          /* connections, 1 to 16 */
  const char *url;            /* "nfsrdma://10.100.0.1/export?provider=iwarp", or HOST:/PATH */
  const char *option_list;    /* words as in mount -o, after the URL's: "nconnect=4,ro" */
  uint32_t rsize_bytes, wsize_bytes;
  uint32_t connect_timeout_ms;
  uint32_t reserved;          /* 0 */
} nfsrdma_options;

#define NFSRDMA_OPTIONS_INIT { sizeof(nfsrdma_options), 0, 0, NULL, NULL, 0, 0, 0, 0 }

/* A context that is not connected. NULL when there is no memory. Ended by nfsrdma_free(). */
NFSRDMA_API nfsrdma_ctx *nfsrdma_new(void);

/* Connects to the URL's path, which becomes "/" of every path below. Once per context; after the process's last fork.
 * Blocks at most the connect timeout (15 s). -EISCONN; -EINVAL: an option, the text says which; -ENODEV: no RDMA
 * device; -ECONNREFUSED, -EHOSTUNREACH, -ETIMEDOUT: the server was not reached; -ENOENT: no such path there.
 * The asynchronous form calls back on a thread of its own, and not before that may the context be used or freed. */
NFSRDMA_API int nfsrdma_connect(nfsrdma_ctx *ctx, const nfsrdma_options *options);
NFSRDMA_API int nfsrdma_connect_async(nfsrdma_ctx *ctx, const nfsrdma_options *options, nfsrdma_callback callback,
                                      void *private_data);

/* Sends what is not yet durable and ends the session: 0, or what could not be saved. No call may be running. -EBUSY:
 * files, directories or registered memory of this context have not been ended. The asynchronous form calls back on a
 * thread of its own. */
NFSRDMA_API int nfsrdma_disconnect(nfsrdma_ctx *ctx);
NFSRDMA_API int nfsrdma_disconnect_async(nfsrdma_ctx *ctx, nfsrdma_callback callback, void *private_data);

/* nfsrdma_disconnect(), dropping its error, and the context's end. NULL is allowed. Not inside a callback. With handles
 * that have not been ended it frees nothing, and logs an error. */
NFSRDMA_API void nfsrdma_free(nfsrdma_ctx *ctx);

/* The text of the last failure of a call on ctx by the calling thread, "" when there was none; one line, no newline.
 * It stays until this thread's next call of the library. */
NFSRDMA_API const char *nfsrdma_strerror(const nfsrdma_ctx *ctx);

enum nfsrdma_origin {
  NFSRDMA_ORIGIN_LOCAL = 0,       /* this process or its kernel */
  NFSRDMA_ORIGIN_USAGE = 1,       /* an argument or option */
  NFSRDMA_ORIGIN_CONNECTION = 2,  /* the server was not reached, or the link was lost */
  NFSRDMA_ORIGIN_PROTOCOL = 3,    /* the peer broke its specification */
  NFSRDMA_ORIGIN_SERVER = 4       /* the server said no */
};
/* Who said no in that failure. */
NFSRDMA_API int nfsrdma_error_origin(const nfsrdma_ctx *ctx);

/* On whose behalf the calls that follow go out (AUTH_SYS; at most 16 groups travel). Without it: the process's
 * effective ids, or the options uid and gid. Not while calls are running. */
NFSRDMA_API int nfsrdma_set_credentials(nfsrdma_ctx *ctx, uint32_t uid, uint32_t gid, const uint32_t *groups,
                                        size_t group_count);

typedef struct nfsrdma_info {
  size_t struct_size;
  uint32_t minor_version, connections;
  uint32_t rsize_bytes, wsize_bytes;  /* effective */
  uint32_t lease_s, slots;
  uint32_t name_bytes_max, reserved;
  uint64_t file_size_max;
  uint64_t pool_bytes_max, pool_bytes_registered;
} nfsrdma_info;

/* Fills at most info->struct_size bytes. Asks nobody, so it has one form. */
NFSRDMA_API int nfsrdma_get_info(nfsrdma_ctx *ctx, nfsrdma_info *info);

/* Counters as one JSON object, or as /proc/self/mountstats has them. To be freed by nfsrdma_free_text(); NULL when not
 * connected. Ask nobody, so they have one form. */
NFSRDMA_API char *nfsrdma_stats_json(nfsrdma_ctx *ctx);
NFSRDMA_API char *nfsrdma_mountstats(nfsrdma_ctx *ctx, const char *mount_point);
NFSRDMA_API void nfsrdma_free_text(char *text);

/* ---- event loops of the program (NFSRDMA_CALLBACKS_BY_SERVICE) ---------------------------------------------- */

/* A descriptor that is readable while callbacks wait; it stays the context's. -EINVAL without the flag. */
NFSRDMA_API int nfsrdma_get_fd(nfsrdma_ctx *ctx);
/* Makes the callbacks that wait, without blocking: their number. One thread at a time; callbacks may start calls, but
 * not call this. */
NFSRDMA_API int nfsrdma_service(nfsrdma_ctx *ctx);

/* ---- memory ------------------------------------------------------------------------------------------------ */

enum nfsrdma_mem_kind {
  NFSRDMA_MEM_HOST = 0,
  NFSRDMA_MEM_MEMFD = 1,
  NFSRDMA_MEM_CUDA = 2,
  NFSRDMA_MEM_DMABUF_FD = 3
};

/* Registers [address, address + length_bytes), so that data is placed straight into it and sent straight from it. The
 * memory stays the caller's and must outlive *mem. kind: NFSRDMA_MEM_HOST; the others give -EOPNOTSUPP until they are
 * there. flags: 0. -ENOMEM: the text names needed and allowed bytes. Local, so it has one form. */
NFSRDMA_API int nfsrdma_mem_register(nfsrdma_ctx *ctx, void *address, size_t length_bytes, int kind, uint32_t flags,
                                     nfsrdma_mem **mem);
/* Not while a call uses it, nor between an unsynced nfsrdma_pwrite_mem() from it and the nfsrdma_fsync() or
 * nfsrdma_close() that made it durable. NULL is allowed. */
NFSRDMA_API void nfsrdma_mem_unregister(nfsrdma_mem *mem);

/* ---- names ------------------------------------------------------------------------------------------------- */
/* Paths are bytes, begin with "/" and count from the connected path. Symbolic links inside a path are followed, 40 at
 * most (-ELOOP); the last component is followed unless a function says otherwise. */

enum nfsrdma_type {
  NFSRDMA_TYPE_UNKNOWN = 0,
  NFSRDMA_TYPE_REGULAR = 1,
  NFSRDMA_TYPE_DIRECTORY = 2,
  NFSRDMA_TYPE_BLOCK = 3,
  NFSRDMA_TYPE_CHARACTER = 4,
  NFSRDMA_TYPE_SYMLINK = 5,
  NFSRDMA_TYPE_SOCKET = 6,
  NFSRDMA_TYPE_FIFO = 7
};

typedef struct nfsrdma_time {
  int64_t seconds;       /* since 1970, UTC */
  uint32_t nanoseconds;
  uint32_t reserved;
} nfsrdma_time;

typedef struct nfsrdma_stat_buf {
  uint32_t type;         /* nfsrdma_type */
  uint32_t mode;         /* permissions with suid, sgid, sticky; no type */
  uint32_t links;
  uint32_t uid, gid;
  uint32_t rdev_major, rdev_minor;
  uint32_t reserved;
  uint64_t size_bytes;
  uint64_t used_bytes;
  uint64_t fileid;
  uint64_t fsid_major, fsid_minor;
  uint64_t change;       /* moves with every change of data or attributes */
  nfsrdma_time atime, mtime, ctime;
} nfsrdma_stat_buf;

/* lstat does not follow the last component. */
NFSRDMA_API int nfsrdma_stat(nfsrdma_ctx *ctx, const char *path, nfsrdma_stat_buf *out);
NFSRDMA_API int nfsrdma_stat_async(nfsrdma_ctx *ctx, const char *path, nfsrdma_stat_buf *out,
                                   nfsrdma_callback callback, void *private_data);
NFSRDMA_API int nfsrdma_lstat(nfsrdma_ctx *ctx, const char *path, nfsrdma_stat_buf *out);
NFSRDMA_API int nfsrdma_lstat_async(nfsrdma_ctx *ctx, const char *path, nfsrdma_stat_buf *out,
                                    nfsrdma_callback callback, void *private_data);

/* mask: 4 read, 2 write, 1 execute or search, as access(2). -EACCES where one of them is not granted. */
NFSRDMA_API int nfsrdma_access(nfsrdma_ctx *ctx, const char *path, int mask);
NFSRDMA_API int nfsrdma_access_async(nfsrdma_ctx *ctx, const char *path, int mask, nfsrdma_callback callback,
                                     void *private_data);

/* The text of a link into buffer, with a zero byte behind it, cut where buffer_bytes end. Gives the length of the whole
 * text. */
NFSRDMA_API int64_t nfsrdma_readlink(nfsrdma_ctx *ctx, const char *path, char *buffer, size_t buffer_bytes);
NFSRDMA_API int nfsrdma_readlink_async(nfsrdma_ctx *ctx, const char *path, char *buffer, size_t buffer_bytes,
                                       nfsrdma_callback callback, void *private_data);

/* mode is taken as it is, without the process's umask. */
NFSRDMA_API int nfsrdma_mkdir(nfsrdma_ctx *ctx, const char *path, uint32_t mode);
NFSRDMA_API int nfsrdma_mkdir_async(nfsrdma_ctx *ctx, const char *path, uint32_t mode, nfsrdma_callback callback,
                                    void *private_data);

/* rmdir: -ENOTDIR, -ENOTEMPTY. unlink: -EISDIR. Neither follows the last component. */
NFSRDMA_API int nfsrdma_rmdir(nfsrdma_ctx *ctx, const char *path);
NFSRDMA_API int nfsrdma_rmdir_async(nfsrdma_ctx *ctx, const char *path, nfsrdma_callback callback,
                                    void *private_data);
NFSRDMA_API int nfsrdma_unlink(nfsrdma_ctx *ctx, const char *path);
NFSRDMA_API int nfsrdma_unlink_async(nfsrdma_ctx *ctx, const char *path, nfsrdma_callback callback,
                                     void *private_data);

/* Neither last component is followed; a file in the way is replaced. */
NFSRDMA_API int nfsrdma_rename(nfsrdma_ctx *ctx, const char *from, const char *to);
NFSRDMA_API int nfsrdma_rename_async(nfsrdma_ctx *ctx, const char *from, const char *to, nfsrdma_callback callback,
                                     void *private_data);

/* A symbolic link at path whose text is target. */
NFSRDMA_API int nfsrdma_symlink(nfsrdma_ctx *ctx, const char *target, const char *path);
NFSRDMA_API int nfsrdma_symlink_async(nfsrdma_ctx *ctx, const char *target, const char *path,
                                      nfsrdma_callback callback, void *private_data);

/* A further name for the file at `from`, whose last component is not followed. */
NFSRDMA_API int nfsrdma_link(nfsrdma_ctx *ctx, const char *from, const char *to);
NFSRDMA_API int nfsrdma_link_async(nfsrdma_ctx *ctx, const char *from, const char *to, nfsrdma_callback callback,
                                   void *private_data);

NFSRDMA_API int nfsrdma_chmod(nfsrdma_ctx *ctx, const char *path, uint32_t mode);
NFSRDMA_API int nfsrdma_chmod_async(nfsrdma_ctx *ctx, const char *path, uint32_t mode, nfsrdma_callback callback,
                                    void *private_data);

/* UINT32_MAX leaves an id as it is. */
NFSRDMA_API int nfsrdma_chown(nfsrdma_ctx *ctx, const char *path, uint32_t uid, uint32_t gid);
NFSRDMA_API int nfsrdma_chown_async(nfsrdma_ctx *ctx, const char *path, uint32_t uid, uint32_t gid,
                                    nfsrdma_callback callback, void *private_data);

/* NULL leaves a time as it is; nanoseconds UINT32_MAX is the server's now. */
NFSRDMA_API int nfsrdma_utimens(nfsrdma_ctx *ctx, const char *path, const nfsrdma_time *atime,
                                const nfsrdma_time *mtime);
NFSRDMA_API int nfsrdma_utimens_async(nfsrdma_ctx *ctx, const char *path, const nfsrdma_time *atime,
                                      const nfsrdma_time *mtime, nfsrdma_callback callback, void *private_data);

NFSRDMA_API int nfsrdma_truncate(nfsrdma_ctx *ctx, const char *path, uint64_t size_bytes);
NFSRDMA_API int nfsrdma_truncate_async(nfsrdma_ctx *ctx, const char *path, uint64_t size_bytes,
                                       nfsrdma_callback callback, void *private_data);

typedef struct nfsrdma_statvfs_buf {
  uint64_t total_bytes, free_bytes, available_bytes;
  uint64_t total_files, free_files, available_files;
  uint32_t name_bytes_max;
  uint32_t reserved;
} nfsrdma_statvfs_buf;

/* The file system that holds path. */
NFSRDMA_API int nfsrdma_statvfs(nfsrdma_ctx *ctx, const char *path, nfsrdma_statvfs_buf *out);
NFSRDMA_API int nfsrdma_statvfs_async(nfsrdma_ctx *ctx, const char *path, nfsrdma_statvfs_buf *out,
                                      nfsrdma_callback callback, void *private_data);

/* ---- directories ------------------------------------------------------------------------------------------- */

typedef struct nfsrdma_dirent {
  const char *name;           /* until the next read or close of this directory */
  int has_attributes;         /* 0: the server gave none, attributes is all zeros */
  uint32_t reserved;
  nfsrdma_stat_buf attributes;
} nfsrdma_dirent;

/* -ENOTDIR. *dir is ended by nfsrdma_closedir(). */
NFSRDMA_API int nfsrdma_opendir(nfsrdma_ctx *ctx, const char *path, nfsrdma_dir **dir);
NFSRDMA_API int nfsrdma_opendir_async(nfsrdma_ctx *ctx, const char *path, nfsrdma_dir **dir,
                                      nfsrdma_callback callback, void *private_data);
/* The next entry, never "." or "..": 1, or 0 at the end. -ESTALE: the directory changed so that the server cannot go
 * on; begin again with a new nfsrdma_opendir(). One call at a time per directory. */
NFSRDMA_API int nfsrdma_readdir(nfsrdma_dir *dir, nfsrdma_dirent *entry);
NFSRDMA_API int nfsrdma_readdir_async(nfsrdma_dir *dir, nfsrdma_dirent *entry, nfsrdma_callback callback,
                                      void *private_data);
/* Local, so it has one form. NULL is allowed. Not while the directory is being read. */
NFSRDMA_API void nfsrdma_closedir(nfsrdma_dir *dir);

/* ---- files ------------------------------------------------------------------------------------------------- */

enum nfsrdma_open_flags {
  NFSRDMA_OPEN_READ = 1,
  NFSRDMA_OPEN_WRITE = 2,
  NFSRDMA_OPEN_TRUNCATE = 4,    /* size 0 at open; with WRITE */
  NFSRDMA_OPEN_EXCLUSIVE = 8,   /* with CREATE: -EEXIST where there is one */
  NFSRDMA_OPEN_CREATE = 16
};

/* mode is that of a new file, without the process's umask. -EISDIR. *file is ended by nfsrdma_close(). */
NFSRDMA_API int nfsrdma_open(nfsrdma_ctx *ctx, const char *path, uint32_t flags, uint32_t mode, nfsrdma_file **file);
NFSRDMA_API int nfsrdma_open_async(nfsrdma_ctx *ctx, const char *path, uint32_t flags, uint32_t mode,
                                   nfsrdma_file **file, nfsrdma_callback callback, void *private_data);

/* Bytes read, less than asked only at the end of the file. Any length: it is split into requests that are in flight
 * together. */
NFSRDMA_API int64_t nfsrdma_pread(nfsrdma_file *file, void *buffer, size_t length_bytes, uint64_t offset_bytes);
NFSRDMA_API int nfsrdma_pread_async(nfsrdma_file *file, void *buffer, size_t length_bytes, uint64_t offset_bytes,
                                    nfsrdma_callback callback, void *private_data);
/* The same into registered memory: no copy is made. -EINVAL: the piece is not inside mem. */
NFSRDMA_API int64_t nfsrdma_pread_mem(nfsrdma_file *file, nfsrdma_mem *mem, size_t mem_offset_bytes,
                                      size_t length_bytes, uint64_t offset_bytes);
NFSRDMA_API int nfsrdma_pread_mem_async(nfsrdma_file *file, nfsrdma_mem *mem, size_t mem_offset_bytes,
                                        size_t length_bytes, uint64_t offset_bytes, nfsrdma_callback callback,
                                        void *private_data);

enum nfsrdma_write_flags {
  NFSRDMA_WRITE_DURABLE = 1  /* on stable storage before it is answered; without it after fsync or close */
};

/* Bytes written: all, or an error. -ENOSPC, -EDQUOT and -EIO may come as late as fsync and close. */
NFSRDMA_API int64_t nfsrdma_pwrite(nfsrdma_file *file, const void *buffer, size_t length_bytes,
                                   uint64_t offset_bytes, uint32_t flags);
NFSRDMA_API int nfsrdma_pwrite_async(nfsrdma_file *file, const void *buffer, size_t length_bytes,
                                     uint64_t offset_bytes, uint32_t flags, nfsrdma_callback callback,
                                     void *private_data);
/* The same from registered memory: no copy is made, and the piece must stay unchanged until fsync or close succeeded,
 * unless flags say NFSRDMA_WRITE_DURABLE. */
NFSRDMA_API int64_t nfsrdma_pwrite_mem(nfsrdma_file *file, nfsrdma_mem *mem, size_t mem_offset_bytes,
                                       size_t length_bytes, uint64_t offset_bytes, uint32_t flags);
NFSRDMA_API int nfsrdma_pwrite_mem_async(nfsrdma_file *file, nfsrdma_mem *mem, size_t mem_offset_bytes,
                                         size_t length_bytes, uint64_t offset_bytes, uint32_t flags,
                                         nfsrdma_callback callback, void *private_data);

NFSRDMA_API int nfsrdma_fstat(nfsrdma_file *file, nfsrdma_stat_buf *out);
NFSRDMA_API int nfsrdma_fstat_async(nfsrdma_file *file, nfsrdma_stat_buf *out, nfsrdma_callback callback,
                                    void *private_data);
NFSRDMA_API int nfsrdma_ftruncate(nfsrdma_file *file, uint64_t size_bytes);
NFSRDMA_API int nfsrdma_ftruncate_async(nfsrdma_file *file, uint64_t size_bytes, nfsrdma_callback callback,
                                        void *private_data);

/* 0: all that was written through any handle of this file is on stable storage. */
NFSRDMA_API int nfsrdma_fsync(nfsrdma_file *file);
NFSRDMA_API int nfsrdma_fsync_async(nfsrdma_file *file, nfsrdma_callback callback, void *private_data);

/* nfsrdma_fsync() and the handle's end, whatever the result. Not while another call uses the handle; the asynchronous
 * form takes the handle at once. */
NFSRDMA_API int nfsrdma_close(nfsrdma_file *file);
NFSRDMA_API int nfsrdma_close_async(nfsrdma_file *file, nfsrdma_callback callback, void *private_data);

#ifdef __cplusplus
}
#endif

#endif
