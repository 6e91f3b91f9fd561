/* SPDX-License-Identifier: Apache-2.0
 * NFSRDMA_API marks what the shared library exports; everything else is hidden. */
#ifndef NFSRDMA_EXPORT_H
#define NFSRDMA_EXPORT_H

#define NFSRDMA_API __attribute__((visibility("default")))

#endif
