# SPDX-License-Identifier: Apache-2.0
set(option_sources ${CMAKE_SOURCE_DIR}/libnfsrdma/client/options.cpp
                   ${CMAKE_SOURCE_DIR}/libnfsrdma/client/option_table.cpp
                   ${CMAKE_SOURCE_DIR}/libnfsrdma/client/option_values.cpp
                   ${CMAKE_SOURCE_DIR}/libnfsrdma/client/url.cpp)
nfsrdma_fuzz(options SOURCES options.cpp ${option_sources} ROOMS base
             DICTIONARY ${CMAKE_CURRENT_SOURCE_DIR}/options.dict)
nfsrdma_fuzz(url SOURCES url.cpp ${option_sources} ROOMS base DICTIONARY ${CMAKE_CURRENT_SOURCE_DIR}/url.dict)
