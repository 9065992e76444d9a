#pragma once

#include "headwater/device/device.h"

namespace headwater::host {

/// Makes the copy in this thread, for devices whose bytes it can reach.
void copy_now(const Copy& copy);

}  // namespace headwater::host
