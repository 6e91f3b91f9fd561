// SPDX-License-Identifier: Apache-2.0
// NFSRDMA_API for the C++ headers; the C header takes it from export.h itself.
#pragma once

#include "nfsrdma/export.h"
