# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a header with the commit of SOURCE_DIR: from git, else from the line that `git archive` filled in,
# else empty. Only the repository that SOURCE_DIR is the top of is asked: a tarball may be unpacked inside another.

set(commit "")
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE_DIR} rev-parse --show-cdup
                  OUTPUT_VARIABLE above RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed AND above STREQUAL "")
    execute_process(COMMAND ${git} -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 --exclude=*
                    OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
endif()
if(commit STREQUAL "")
  file(STRINGS ${SOURCE_DIR}/cmake/commit.txt archived LIMIT_COUNT 1)
  if(archived MATCHES "^[0-9a-f]+$")
    set(commit ${archived})
  endif()
endif()

set(text "#define NFSRDMA_COMMIT \"${commit}\"\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${OUTPUT} "${text}")
endif()
