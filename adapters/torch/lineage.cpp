#include "lineage.h"

#include "cache_lock.h"
#include "storage_book.h"
#include "tensor_walk.h"

#include <algorithm>
#include <utility>

namespace headwater::adapter {
namespace {

constinit thread_local Wish wish_here = Wish::kNone;

bool has_bytes(const Origin& origin) {
  return origin.tensor != nullptr && origin.tensor->residency != Residency::kGivenUp;
}

/// Whether its writers lead to the bytes it has now.
bool is_current(const Origin& origin) {
  return origin.sound && origin.filled &&
         (origin.tensor == nullptr || origin.num_writes == origin.tensor->num_writes);
}

bool shows_shapes_only(const Ingredient& ingredient) {
  return std::all_of(ingredient.parts.begin(), ingredient.parts.end(), [](const Part& part) {
    return !part.picture || part.picture->shape_only;
  });
}

/// The storages of an argument's tensors, in the order of a recipe's pictures.
template <class Visit>
void for_each_managed(const c10::IValue& value, Visit visit) {
  for_each_storage(value, [&visit](c10::StorageImpl& storage, Adoption) {
    if (Tensor* tensor = StorageBook::find(storage)) {
      visit(*tensor);
    }
  });
}

}  // namespace

std::vector<std::shared_ptr<Origin>> inputs_of(const Recipe& recipe) {
  std::vector<std::shared_ptr<Origin>> inputs;
  for (const Ingredient& ingredient : recipe.arguments) {
    for (const Part& part : ingredient.parts) {
      if (part.picture && part.picture->origin) {
        inputs.push_back(part.picture->origin);
      }
    }
  }
  return inputs;
}

Origin::~Origin() {
  forget_writers();
  if (kept) {  // to free it takes the mutex, which may be held here
    drop_after_unlocking(
        c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(kept.unsafeGetStorageImpl()));
  }
}

void Origin::forget_writers() {
  for (Writer& writer : writers) {  // the same goes for what recipes hold
    drop_after_unlocking(std::move(writer.recipe));
  }
  writers.clear();
}

Wish Lineage::wish() {
  return wish_here;
}

Wish Lineage::set_wish(Wish wish) {
  return std::exchange(wish_here, wish);
}

void Lineage::tie(Recipe& recipe, Arguments arguments, const Tensor* written) {
  cache_.mutex().assume_held();
  for (std::size_t i = 0; i < recipe.arguments.size(); ++i) {
    if (shows_shapes_only(recipe.arguments[i])) {
      continue;
    }
    c10::SmallVector<Tensor*, 1> tensors;
    for_each_managed(arguments[i], [&tensors](Tensor& tensor) { tensors.push_back(&tensor); });
    const auto* next = tensors.begin();
    for (Part& part : recipe.arguments[i].parts) {
      if (part.picture && next != tensors.end()) {
        Tensor& tensor = **next++;
        part.picture->origin = &tensor == written ? nullptr : find_or_add(tensor);
      }
    }
  }
}

void Lineage::made(Tensor& tensor, Writer writer, Replayable when) {
  cache_.mutex().assume_held();
  const std::shared_ptr<Origin> origin = find_or_add(tensor);
  origin->forget_writers();
  origin->cost = 0;
  origin->sound = true;
  origin->filled = false;
  take_in(origin, std::move(writer), when);
}

void Lineage::wrote(Tensor& tensor, Writer writer, Replayable when) {
  cache_.mutex().assume_held();
  const std::shared_ptr<Origin> origin = find(tensor);
  // The write at hand has been counted already.
  if (origin && origin->sound && origin->num_writes + 1 == tensor.num_writes) {
    take_in(origin, std::move(writer), when);
  } else if (origin) {
    refuse(*origin);
  }
}

void Lineage::take_in(const std::shared_ptr<Origin>& origin, Writer writer, Replayable when) {
  const std::vector<std::shared_ptr<Origin>> inputs = inputs_of(*writer.recipe);
  origin->cost += 1;
  for (const std::shared_ptr<Origin>& input : inputs) {
    origin->cost = std::min(origin->cost + input->cost, kMostCost + 1);
  }
  const bool too_dear = when == Replayable::kAlways && origin->cost > kMostCost;
  if (too_dear || !is_complete(inputs) || builds_on_unseen(*origin, writer)) {  // others begin here
    origin->cost = 0;
    refuse(*origin);
    return;
  }
  for (const std::shared_ptr<Origin>& input : inputs) {
    add_dependent(*input, origin);
  }
  origin->filled = origin->filled || writer.recipe->fills();
  origin->writers.push_back(std::move(writer));
  origin->num_writes = origin->tensor->num_writes;
  origin->written_at = ++num_written_;
  if (origin->filled) {
    cache_.allow_replay(*origin->tensor, when);
  }
}

bool Lineage::is_complete(const std::vector<std::shared_ptr<Origin>>& inputs) {
  // One that was freed while the operator ran, or whose recipe another thread's step has ended.
  return std::all_of(inputs.begin(), inputs.end(), [](const std::shared_ptr<Origin>& input) {
    return input->tensor != nullptr || input->sound;
  });
}

bool Lineage::builds_on_unseen(const Origin& origin, const Writer& writer) {
  return writer.result == Writer::kInPlace && !origin.filled && !writer.recipe->overwrites;
}

void Lineage::add_dependent(Origin& origin, const std::shared_ptr<Origin>& dependent) {
  std::vector<std::weak_ptr<Origin>>& all = origin.dependents;
  if (!all.empty() && all.back().lock() == dependent) {
    return;
  }
  if (all.size() >= origin.prune_at) {
    std::erase_if(all, [](const std::weak_ptr<Origin>& weak) { return weak.expired(); });
    origin.prune_at = std::max(origin.prune_at, 2 * all.size());
  }
  all.push_back(dependent);
}

std::vector<std::shared_ptr<Origin>> Lineage::to_replay(std::span<const Use> uses) {
  cache_.mutex().assume_held();
  std::vector<std::shared_ptr<Origin>> found;
  c10::SmallVector<std::shared_ptr<Origin>, 4> written;
  for (const Use& use : uses) {
    std::shared_ptr<Origin> origin;
    if (use.tensor->residency == Residency::kGivenUp) {
      found.push_back(find(*use.tensor));
    } else if (use.access != AccessKind::kRead) {
      origin = find(*use.tensor);
    }
    if (!origin) {
      continue;
    }
    if (std::shared_ptr<Origin> dependent = dependent_given_up(*origin)) {
      found.push_back(std::move(dependent));
    }
    written.push_back(std::move(origin));
  }
  if (found.empty()) {
    for (const std::shared_ptr<Origin>& origin : written) {
      refuse_dependents(*origin);
    }
  }
  return found;
}

std::shared_ptr<Origin> Lineage::any_given_up() {
  cache_.mutex().assume_held();
  for (const auto& [tensor, origin] : origins_) {
    if (tensor->residency == Residency::kGivenUp) {
      return origin;
    }
  }
  return nullptr;
}

std::shared_ptr<Origin> Lineage::dependent_given_up(const Origin& origin) {
  for (const std::weak_ptr<Origin>& weak : origin.dependents) {
    std::shared_ptr<Origin> dependent = weak.lock();
    if (!dependent || has_bytes(*dependent)) {
      continue;
    }
    if (dependent->tensor != nullptr) {
      return dependent;
    }
    if (std::shared_ptr<Origin> further = dependent_given_up(*dependent)) {
      return further;
    }
  }
  return nullptr;
}

void Lineage::refuse(Origin& origin) {
  origin.sound = false;
  origin.forget_writers();
  if (origin.tensor != nullptr) {
    cache_.forbid_replay(*origin.tensor);
  } else {
    refuse_dependents(origin);
  }
}

void Lineage::refuse_dependents(Origin& origin) {
  for (const std::weak_ptr<Origin>& weak : std::exchange(origin.dependents, {})) {
    const std::shared_ptr<Origin> dependent = weak.lock();
    if (dependent && dependent->sound) {
      refuse(*dependent);
    }
  }
}

std::shared_ptr<Origin> Lineage::find(const Tensor& tensor) {
  cache_.mutex().assume_held();
  const auto entry = origins_.find(&tensor);
  return entry == origins_.end() ? nullptr : entry->second;
}

std::shared_ptr<Origin> Lineage::find_or_add(Tensor& tensor) {
  std::shared_ptr<Origin>& origin = origins_[&tensor];
  if (!origin) {
    origin = std::make_shared<Origin>();
    origin->tensor = &tensor;
    active_.store(true, std::memory_order_relaxed);
  }
  return origin;
}

bool Lineage::outlives(Tensor& tensor, c10::DeleterFnPtr deleter) {
  cache_.mutex().assume_held();
  const auto entry = origins_.find(&tensor);
  if (entry == origins_.end()) {
    return false;
  }
  const std::shared_ptr<Origin> origin = entry->second;
  if (!is_current(*origin) && dependent_given_up(*origin)) {
    c10::DataPtr bytes(tensor.device.data(), &tensor, deleter, device_);
    origin->kept = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                         tensor.bytes,
                                                         std::move(bytes),
                                                         /*allocator=*/nullptr,
                                                         /*resizable=*/false);
    tensor.owner = origin->kept.unsafeGetStorageImpl();
    origins_.erase(entry);  // it goes with the last recipe that needs it
    return true;
  }
  const bool lost = !is_current(*origin);
  origins_.erase(entry);
  active_.store(!origins_.empty(), std::memory_order_relaxed);
  origin->tensor = nullptr;
  if (lost) {
    refuse(*origin);
  }
  return false;
}

void Lineage::end_step() {
  cache_.mutex().assume_held();
  if (active() && !any_given_up()) {
    clear();
  }
}

void Lineage::clear() {
  cache_.mutex().assume_held();
  for (auto& [tensor, origin] : std::exchange(origins_, {})) {
    cache_.forbid_replay(*origin->tensor);
    // An operator under way on another thread may yet tie its recipe to it.
    origin->tensor = nullptr;
    origin->sound = false;
    origin->forget_writers();
  }
  active_.store(false, std::memory_order_relaxed);
}

}  // namespace headwater::adapter
