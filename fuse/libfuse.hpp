// SPDX-License-Identifier: Apache-2.0
// The one way in to libfuse and the kernel's message layouts.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
