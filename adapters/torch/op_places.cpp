#include "op_scope.h"
#include "storage_book.h"

#include <algorithm>

// What operators that find places say of their results.

namespace headwater::adapter {

void OpScope::count_places(Arguments arguments) {
  constexpr std::size_t kDilation = 4;
  const at::Tensor& searched = arguments.front().toTensor();
  const auto is_one = [](std::int64_t step) { return step == 1; };
  const std::vector<std::int64_t> steps = arguments[kDilation].toIntVector();
  // A window with gaps may miss the plane and find a place outside.
  if (searched.defined() && searched.dim() >= 2 &&
      std::all_of(steps.begin(), steps.end(), is_one)) {
    num_places_ = static_cast<std::size_t>(searched.size(-1) * searched.size(-2));
  }
}

void OpScope::pack_places(const at::Tensor& result) {
  Tensor* const tensor = StorageBook::find(*result.storage().unsafeGetStorageImpl());
  // All of the storage is this result, and nobody has written it since.
  if (tensor != nullptr && num_places_ <= kWordLimit && result.scalar_type() == at::kLong &&
      tensor->bytes == result.nbytes()) {
    cache_.set_packable(*tensor, Packing::kWords);
  }
}

}  // namespace headwater::adapter
