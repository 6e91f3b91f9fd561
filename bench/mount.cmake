# SPDX-License-Identifier: Apache-2.0
# A script over the built programs; the link is where scripts/bench looks.
file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/mount_memory ${CMAKE_BINARY_DIR}/bench/mount_memory SYMBOLIC)
