#include "as_it_was.h"

#include "dispatch_key.h"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include <algorithm>
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

using Precision = at::Float32Precision;
using PrecisionOf = std::pair<at::Float32Backend, at::Float32Op>;

constexpr std::array<PrecisionOf, 6> kPrecisions{{
    {at::Float32Backend::CUDA, at::Float32Op::MATMUL},
    {at::Float32Backend::CUDA, at::Float32Op::CONV},
    {at::Float32Backend::CUDA, at::Float32Op::RNN},
    {at::Float32Backend::MKLDNN, at::Float32Op::MATMUL},
    {at::Float32Backend::MKLDNN, at::Float32Op::CONV},
    {at::Float32Backend::MKLDNN, at::Float32Op::RNN},
}};

/// The older getter of one precision for all products throws where that is not so.
std::array<Precision, kPrecisions.size()> precisions_now() {
  std::array<Precision, kPrecisions.size()> now{};
  std::transform(kPrecisions.begin(), kPrecisions.end(), now.begin(), [](PrecisionOf which) {
    return at::globalContext().float32Precision(which.first, which.second);
  });
  return now;
}

/// Most of them follow what is set for all operators of a backend, or for all backends, and are to
/// go on doing so: one is set for itself only where it would come to something else.
void set_precision(PrecisionOf which, Precision value) {
  at::Context& context = at::globalContext();
  context.setFloat32Precision(which.first, which.second, Precision::NONE);
  if (context.float32Precision(which.first, which.second) != value) {
    context.setFloat32Precision(which.first, which.second, value);
  }
}

void put_back(RandomState random) {
  const c10::impl::ExcludeDispatchKeyGuard unseen(kInterceptKey);
  const std::scoped_lock lock(random.generator.mutex());
  if (random.holder.defined()) {
    random.generator.graphsafe_set_state(random.holder);
    return;
  }
  const auto size = static_cast<std::int64_t>(random.state.size());
  random.generator.set_state(at::from_blob(random.state.data(), {size}, at::kByte));
}

/// What it draws from: of a GPU the object itself, which goes on changing.
RandomState present_state(at::Generator generator) {
  const c10::impl::ExcludeDispatchKeyGuard unseen(kInterceptKey);
  const std::scoped_lock lock(generator.mutex());
  if (generator.device().is_cuda()) {  // see Note [States of generators]
    at::Generator holder = generator.graphsafe_get_state();
    return {.generator = std::move(generator), .holder = std::move(holder), .state = {}};
  }
  const at::Tensor state = generator.get_state();
  const auto* begin = state.const_data_ptr<std::uint8_t>();
  return {.generator = std::move(generator), .holder = {}, .state = {begin, begin + state.numel()}};
}

/// Puts back the state of then, which may be needed once more: what is drawn changes a copy.
void put_back_a_copy(const RandomState& random) {
  put_back(random.holder.defined() ? RandomState{random.generator, random.holder.clone(), {}}
                                   : random);
}

constinit thread_local const AsItWas* as_it_was_here = nullptr;

}  // namespace

RandomState random_state(at::Generator generator) {
  RandomState random = present_state(std::move(generator));
  if (random.holder.defined()) {
    const std::scoped_lock lock(random.generator.mutex());
    random.holder = random.holder.clone();
  }
  return random;
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
          .precisions = precisions_now(),
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
  for (std::size_t i = 0; i < kPrecisions.size(); ++i) {
    if (precisions[i] != present.precisions[i]) {
      set_precision(kPrecisions[i], precisions[i]);
    }
  }
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(default_type));
  set_processor_mode(denormals);
}

AsItWas::AsItWas(const Settings& settings, const std::optional<RandomState>& random)
    : settings_(Settings::now()), then_(random), outer_(std::exchange(as_it_was_here, this)) {
  if (settings != settings_) {
    settings.put_in_force();
  }
  if (random) {
    random_ = present_state(random->generator);
    put_back_a_copy(*random);
  }
}

AsItWas::~AsItWas() {
  as_it_was_here = outer_;
  settings_.put_in_force();
  if (random_) {
    put_back(*std::move(random_));
  }
}

bool AsItWas::has_generator() {
  return as_it_was_here != nullptr && as_it_was_here->then_;
}

void AsItWas::draw_again() {
  if (has_generator()) {
    put_back_a_copy(*as_it_was_here->then_);
  }
}

}  // namespace headwater::adapter
