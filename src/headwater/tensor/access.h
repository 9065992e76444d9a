#pragma once

namespace headwater {

/// How an operator uses a tensor. A new one is written by the operator that makes it.
enum class AccessKind : unsigned char { kRead, kWrite, kNew };

}  // namespace headwater
