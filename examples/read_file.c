/* SPDX-License-Identifier: Apache-2.0
 * usage: read_file URL FILE: the start of FILE below URL, placed by RDMA straight into memory of ours, to stdout. */
#include <nfsrdma/nfsrdma.h>
#include <stdio.h>
#include <stdlib.h>

static void check(nfsrdma_ctx *ctx, int64_t result, const char *what) {
  if (result >= 0) return;
  fprintf(stderr, "%s: %s\n", what, nfsrdma_strerror(ctx));
  exit(1);
}

int main(int argc, char **argv) {
  const size_t size = 4 << 20;
  nfsrdma_options options = NFSRDMA_OPTIONS_INIT;
  nfsrdma_ctx *ctx = nfsrdma_new();
  nfsrdma_file *file;
  nfsrdma_mem *mem;
  void *memory = aligned_alloc(4096, size);
  if (argc != 3 || !ctx || !memory) return 2;
  options.url = argv[1];
  check(ctx, nfsrdma_connect(ctx, &options), "connect");
  check(ctx, nfsrdma_mem_register(ctx, memory, size, NFSRDMA_MEM_HOST, 0, &mem), "register");
  check(ctx, nfsrdma_open(ctx, argv[2], NFSRDMA_OPEN_READ, 0, &file), "open");
  int64_t length = nfsrdma_pread_mem(file, mem, 0, size, 0);
  check(ctx, length, "read");
  fwrite(memory, 1, (size_t)length, stdout);
  nfsrdma_close(file);
  nfsrdma_mem_unregister(mem);
  nfsrdma_free(ctx);
  free(memory);
}
