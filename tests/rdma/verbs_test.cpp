// SPDX-License-Identifier: Apache-2.0
#include "tests/rdma/verbs_options.hpp"
