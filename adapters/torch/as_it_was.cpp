#include "as_it_was.h"

#include "dispatch_key.h"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include <mutex>
#include <utility>

namespace headwater::adapter {
namespace {

#ifdef __SSE__
constexpr unsigned kDenormalBits = _MM_FLUSH_ZERO_MASK | 0x0040U;  // results, and what is read
#endif

unsigned processor_mode() {
#ifdef __SSE__
  return _mm_getcsr() & kDenormalBits;
#else
  return 0;
#endif
}

void set_processor_mode([[maybe_unused]] unsigned mode) {
#ifdef __SSE__
  _mm_setcsr((_mm_getcsr() & ~kDenormalBits) | mode);
#endif
}

const char* name_of(at::Float32MatmulPrecision precision) {
  switch (precision) {
    case at::Float32MatmulPrecision::HIGHEST:
      return "highest";
    case at::Float32MatmulPrecision::HIGH:
      return "high";
    case at::Float32MatmulPrecision::MEDIUM:
      return "medium";
  }
  return "highest";
}

void put_back(RandomState random) {
  const c10::impl::ExcludeDispatchKeyGuard unseen(kInterceptKey);
  const std::scoped_lock lock(random.generator.mutex());
  const auto size = static_cast<std::int64_t>(random.state.size());
  random.generator.set_state(at::from_blob(random.state.data(), {size}, at::kByte));
}

}  // namespace

RandomState random_state(at::Generator generator) {
  const c10::impl::ExcludeDispatchKeyGuard unseen(kInterceptKey);
  const std::scoped_lock lock(generator.mutex());
  const at::Tensor state = generator.get_state();
  const auto* begin = state.const_data_ptr<std::uint8_t>();
  return {.generator = std::move(generator), .state = {begin, begin + state.numel()}};
}

Settings Settings::now() {
  const at::Context& context = at::globalContext();
  return {.deterministic = context.deterministicAlgorithms(),
          .deterministic_warn_only = context.deterministicAlgorithmsWarnOnly(),
          .cudnn = context.userEnabledCuDNN(),
          .cudnn_benchmark = context.benchmarkCuDNN(),
          .cudnn_deterministic = context.deterministicCuDNN(),
          .mkldnn = context.userEnabledMkldnn(),
          .num_threads = at::get_num_threads(),
          .precision = context.float32MatmulPrecision(),
          .default_type = c10::get_default_dtype_as_scalartype(),
          .denormals = processor_mode()};
}

void Settings::put_in_force() const {
  const Settings present = now();
  if (*this == present) {
    return;
  }
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(deterministic, deterministic_warn_only);
  context.setUserEnabledCuDNN(cudnn);
  context.setBenchmarkCuDNN(cudnn_benchmark);
  context.setDeterministicCuDNN(cudnn_deterministic);
  context.setUserEnabledMkldnn(mkldnn);
  if (num_threads != present.num_threads) {
    at::set_num_threads(num_threads);
  }
  if (precision != present.precision) {
    context.setFloat32MatmulPrecision(name_of(precision));
  }
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(default_type));
  set_processor_mode(denormals);
}

AsItWas::AsItWas(const Settings& settings, const std::optional<RandomState>& random)
    : settings_(Settings::now()) {
  settings.put_in_force();
  if (random) {
    random_ = random_state(random->generator);
    put_back(*random);
  }
}

AsItWas::~AsItWas() {
  settings_.put_in_force();
  if (random_) {
    put_back(*random_);
  }
}

}  // namespace headwater::adapter
