#include "inheritance.h"

#include "cache_lock.h"
#include "dispatch_key.h"
#include "headwater/plan/inherit/inheritances.h"
#include "interceptor.h"
#include "op_scope.h"
#include "session_state.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/copy_ops.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <utility>

namespace headwater::adapter {
namespace {

// Of a softmax (input, dim, half_to_float), and of its gradient (grad, output, dim, input type).
constexpr std::size_t kSoftmaxDim = 1;
constexpr std::size_t kHalfToFloat = 2;
constexpr std::size_t kOutput = 1;
constexpr std::size_t kGradientDim = 2;
constexpr std::size_t kInputType = 3;

/// Rows at a time are a multiple of this: as far from an aligned address as in the whole.
constexpr std::int64_t kRowsTogether = 8;
/// Fewer, and pieces would be much larger than they should.
constexpr std::int64_t kLeastRows = static_cast<std::int64_t>(kInheritedPieces) * 4 * kRowsTogether;

bool is_gradient(const OpTraits& traits) {
  return traits.name.ends_with("_backward_data");
}

/// Whether it has its storage for itself and fills it, row by row.
bool fills_its_storage(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && tensor.has_storage() &&
         tensor.dim() > 0 && tensor.numel() > 0 && tensor.is_contiguous() && !tensor.is_conj() &&
         !tensor.is_neg() && tensor.storage_offset() == 0 &&
         tensor.nbytes() == tensor.storage().nbytes();
}

bool is_last_dim(const c10::IValue& dim, const at::Tensor& tensor) {
  return dim.toInt() == -1 || dim.toInt() == tensor.dim() - 1;
}

std::int64_t num_rows(const at::Tensor& tensor) {
  return tensor.numel() / tensor.size(-1);
}

/// Some rows of a tensor that lies in one piece. Made by hand: no operator runs.
at::Tensor rows_of(const at::Tensor& whole, std::int64_t begin, std::int64_t count) {
  at::Tensor rows = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(whole.storage()), whole.key_set(), whole.dtype());
  c10::TensorImpl* impl = rows.unsafeGetTensorImpl();
  impl->set_sizes_contiguous({count, whole.size(-1)});
  impl->set_storage_offset(whole.storage_offset() + begin * whole.size(-1));
  return rows;
}

/// A tensor over all of a storage, like one that an operator has just made.
at::Tensor tensor_over(c10::Storage storage, const at::Tensor& like) {
  const c10::DispatchKey backend = c10::computeDispatchKey(
      c10::typeMetaToScalarType(like.dtype()), c10::kStrided, like.device());
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(backend), like.dtype());
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(like.sizes());
  return tensor;
}

/// The call for some rows.
torch::jit::Stack piece_of(const OpTraits& traits,
                           Arguments arguments,
                           const at::Tensor& first,
                           std::int64_t begin) {
  constexpr std::int64_t kLastOfTwo = 1;
  torch::jit::Stack stack = arguments.vec();
  stack[0] = first;
  if (is_gradient(traits)) {
    stack[kOutput] = rows_of(arguments[kOutput].toTensor(), begin, first.size(0));
    stack[kGradientDim] = kLastOfTwo;
  } else {
    stack[kSoftmaxDim] = kLastOfTwo;
  }
  return stack;
}

void copy_below(c10::DispatchKeySet keys, const at::Tensor& to, const at::Tensor& from) {
  const c10::impl::ExcludeDispatchKeyGuard exclude(kInterceptKey);
  at::Tensor target = to;
  at::_ops::copy_::redispatch(keys, target, from, /*non_blocking=*/false);
}

}  // namespace

bool can_inherit(const OpTraits& traits, Arguments arguments) {
  if (!traits.inherits || !arguments[0].isTensor()) {
    return false;
  }
  const at::Tensor& first = arguments[0].toTensor();
  if (!fills_its_storage(first) || num_rows(first) < kLeastRows) {
    return false;
  }
  if (!is_gradient(traits)) {
    return is_last_dim(arguments[kSoftmaxDim], first) && !arguments[kHalfToFloat].toBool();
  }
  const at::Tensor& output = arguments[kOutput].toTensor();
  return is_last_dim(arguments[kGradientDim], first) && output.defined() &&
         output.is_contiguous() && output.sizes() == first.sizes() &&
         output.dtype() == first.dtype() &&
         arguments[kInputType].toScalarType() == first.scalar_type();
}

void run_in_heir(const RunningCall& call, torch::jit::Stack& stack) {
  const auto arguments = torch::jit::last(stack, call.traits.num_arguments).vec();
  const at::Tensor& first = arguments[0].toTensor();
  const at::Tensor heir = tensor_over(call.scope.take_inheritance(), first);
  const std::int64_t total = num_rows(first);
  const auto pieces = static_cast<std::int64_t>(kInheritedPieces);
  const std::int64_t rows_at_once =
      ((total + pieces - 1) / pieces + kRowsTogether - 1) / kRowsTogether * kRowsTogether;
  for (std::int64_t begin = 0; begin < total; begin += rows_at_once) {
    const at::Tensor rows = rows_of(heir, begin, std::min(rows_at_once, total - begin));
    torch::jit::Stack piece = piece_of(call.traits, arguments, rows, begin);
    redispatch_with_further_tries(call.scope, call.op, call.traits, call.keys, piece);
    copy_below(call.keys, rows, piece.back().toTensor());
  }
  torch::jit::drop(stack, call.traits.num_arguments);
  stack.emplace_back(heir);
}

// What scopes do about it.

Tensor* OpScope::find_testator() {
  if (!played_ || !played_->inherits || !can_inherit(traits_, arguments_)) {
    return nullptr;
  }
  Tensor* const first =
      StorageBook::find(*arguments_[0].toTensor().storage().unsafeGetStorageImpl());
  const auto times_used = std::count_if(
      uses_.begin(), uses_.end(), [first](const Use& use) { return use.tensor == first; });
  return first != nullptr && times_used == 1 && TensorCache::can_hand_down(*first, stream_)
             ? first
             : nullptr;
}

c10::Storage OpScope::take_inheritance() {
  c10::StorageImpl& storage = *arguments_[0].toTensor().storage().unsafeGetStorageImpl();
  Tensor& testator = *StorageBook::find(storage);
  auto* const use = std::find_if(
      uses_.begin(), uses_.end(), [&](const Use& each) { return each.tensor == &testator; });
  const CacheLock lock(cache_);
  cache_.release({use, 1});
  uses_.erase(use);
  HandedDown inheritance = cache_.hand_down(testator);
  inherited_ = std::move(inheritance.charge);
  const c10::Device device = session_.device();
  const std::size_t bytes = inheritance.bytes.bytes();
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                               bytes,
                                               to_data_ptr(std::move(inheritance.bytes), device),
                                               &session_.memory().allocator(),
                                               /*resizable=*/true);
}

}  // namespace headwater::adapter
