#include "exactness.h"

#include <ATen/Context.h>
#include <ATen/core/function_schema.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace headwater::adapter {
namespace {

constexpr std::size_t kTraining = 5;  // argument of batch norm

/// Their kernels may add up in any order on a GPU, or keep what they need where nobody sees it.
constexpr std::array<std::string_view, 19> kUnsteady{"scatter",
                                                     "index_add",
                                                     "index_put",
                                                     "index_copy",
                                                     "kthvalue",
                                                     "median",
                                                     "index_reduce",
                                                     "aten::put",
                                                     "cumsum",
                                                     "cumprod",
                                                     "histc",
                                                     "bincount",
                                                     "_rnn",
                                                     "lstm",
                                                     "embedding_bag",
                                                     "ctc_loss",
                                                     "max_unpool",
                                                     "multinomial",
                                                     "nll_loss2d"};

/// They set every element they are given, to a number or to what they read or draw. A result
/// (`out`) does not count as given.
constexpr std::array<std::string_view, 11> kOverwriting{"aten::copy_",
                                                        "aten::fill_",
                                                        "aten::zero_",
                                                        "aten::bernoulli_",
                                                        "aten::cauchy_",
                                                        "aten::exponential_",
                                                        "aten::geometric_",
                                                        "aten::log_normal_",
                                                        "aten::normal_",
                                                        "aten::random_",
                                                        "aten::uniform_"};

template <std::size_t kSize>
bool any_in_name(const OpTraits& traits, const std::array<std::string_view, kSize>& parts) {
  return std::any_of(parts.begin(), parts.end(), [&traits](std::string_view part) {
    return traits.name.find(part) != std::string::npos;
  });
}

/// Whether an operator writes tensors, by its schema, and makes others.
bool writes_and_makes(const c10::OperatorHandle& op) {
  const auto is_written = [](const c10::Argument& argument) {
    return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  };
  const auto is_fresh = [](const c10::Argument& result) { return result.alias_info() == nullptr; };
  const std::vector<c10::Argument>& arguments = op.schema().arguments();
  const std::vector<c10::Argument>& results = op.schema().returns();
  return std::any_of(arguments.begin(), arguments.end(), is_written) &&
         std::any_of(results.begin(), results.end(), is_fresh);
}

bool on_gpu(Arguments arguments) {
  return !arguments.empty() && arguments.front().isTensor() &&
         arguments.front().toTensor().defined() && arguments.front().toTensor().is_cuda();
}

bool convolves(const OpTraits& traits) {
  return traits.name.find("convolution") != std::string::npos;
}

bool is_transposed(const OpTraits& traits, Arguments arguments) {
  return traits.name.find("convolution_transpose") != std::string::npos ||
         (traits.transposed && arguments[*traits.transposed].toBool());
}

/// Whether cuDNN may compute it in another way next time. What it found fastest it remembers by
/// thread, and backward runs on threads of its own; a transposed convolution is the gradient of an
/// ordinary one, which it may add up in any order.
bool is_unsteady_convolution(const OpTraits& traits, Arguments arguments) {
  if (!convolves(traits) || !on_gpu(arguments)) {
    return false;
  }
  const at::Context& context = at::globalContext();
  const bool steady = context.deterministicAlgorithms() || context.deterministicCuDNN();
  return context.benchmarkCuDNN() || (is_transposed(traits, arguments) && !steady);
}

}  // namespace

Replay replay_of(const c10::OperatorHandle& op, const OpTraits& traits) {
  if (traits.path != OpPath::kManage || !traits.name.starts_with("aten::") ||
      any_in_name(traits, kUnsteady) || writes_and_makes(op)) {
    return Replay::kRefused;
  }
  return traits.seeded ? Replay::kSeeded : Replay::kExact;
}

Replay replay_of(const OpTraits& traits, Arguments arguments) {
  // Batch norm in evaluation reads the statistics, which its table has as written.
  if ((traits.keeps_statistics && !forgets_statistics(traits, arguments)) ||
      is_unsteady_convolution(traits, arguments)) {
    return Replay::kRefused;
  }
  return traits.replay == Replay::kSeeded && !draws(traits, arguments) ? Replay::kExact
                                                                       : traits.replay;
}

bool replay_differs_by_call(const OpTraits& traits) {
  return traits.keeps_statistics || traits.dropout || convolves(traits);
}

bool draws(const OpTraits& traits, Arguments arguments) {
  return traits.seeded && !(traits.dropout && arguments[*traits.dropout].toDouble() == 0.0);
}

bool may_begin_again(const OpTraits& traits, Arguments arguments) {
  return traits.repeatable || (traits.only_reads && !draws(traits, arguments));
}

bool overwrites(const OpTraits& traits) {
  return traits.overload.ends_with("out") ||
         std::find(kOverwriting.begin(), kOverwriting.end(), traits.name) != kOverwriting.end();
}

bool forgets_statistics(const OpTraits& traits, Arguments arguments) {
  constexpr std::string_view kSuffix = "_batch_norm";
  return traits.keeps_statistics && traits.name.ends_with(kSuffix) && traits.overload.empty() &&
         arguments.size() > kTraining && arguments[kTraining].isBool() &&
         arguments[kTraining].toBool();
}

bool is_statistic(const OpTraits& traits, std::uint16_t index) {
  const auto entry = unmarked_writes().find(traits.name);
  return entry != unmarked_writes().end() &&
         std::find(entry->second.begin(), entry->second.end(), index) != entry->second.end();
}

}  // namespace headwater::adapter
