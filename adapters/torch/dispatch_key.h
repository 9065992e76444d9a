#pragma once

#include <c10/core/DispatchKey.h>
#include <c10/core/DispatchKeySet.h>

namespace headwater::adapter {

/// The key whose fallback sees every operator. Chosen here and nowhere else.
///
/// It lies below autograd and autocast and above the backends, so it sees each real operator of
/// forward, backward and optimizer exactly once. PyTorch reserves it for a fake-tensor mode of its
/// own; Interceptor checks that nobody else has registered a fallback for it.
inline constexpr c10::DispatchKey kInterceptKey = c10::DispatchKey::Fake;
inline constexpr c10::DispatchKeySet kIntercept(kInterceptKey);

/// What is left to do after our key. Up to torch 2.11 that includes Python (subclasses and
/// dispatch modes); later versions have run Python before us.
inline constexpr c10::DispatchKeySet kBelowIntercept(c10::DispatchKeySet::FULL_AFTER,
                                                     kInterceptKey);

}  // namespace headwater::adapter
