#pragma once

#include "headwater/base/mutex.h"
#include "headwater/offload/tensor_cache.h"
#include "recipe.h"

#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace headwater::adapter {

/// One operator that wrote a storage.
struct Writer {
  static constexpr std::size_t kInPlace = ~std::size_t{0};

  std::shared_ptr<const Recipe> recipe;
  std::size_t result = kInPlace;  // which of its results the storage is of
};

/// Where the bytes of a storage come from. Guarded by the cache's mutex.
struct Origin {
  Origin() = default;
  ~Origin();
  Origin(const Origin&) = delete;
  Origin& operator=(const Origin&) = delete;
  Origin(Origin&&) = delete;
  Origin& operator=(Origin&&) = delete;

  /// It is as if it had been made unseen.
  void forget_writers();

  Tensor* tensor = nullptr;      // null once its storage has been freed
  std::vector<Writer> writers;   // in order; none: it was made unseen
  std::uint64_t num_writes = 0;  // those of the tensor that the writers stand for
  std::uint64_t written_at = 0;  // when the last of them ran, among all that left a recipe
  std::size_t cost = 0;  // operators to run if nothing that they need is there, as far as counted
  bool sound = false;    // they can run: the bytes of their inputs are unchanged
  bool filled = false;   // by one of them, see Recipe::fills()
  c10::Storage kept;     // ours, around the bytes of one that was freed
  std::vector<std::weak_ptr<Origin>> dependents;
  std::size_t prune_at = 16;  // dependents
};

/// What a recipe's pictures show, the storage that is being made excepted.
std::vector<std::shared_ptr<Origin>> inputs_of(const Recipe& recipe);

/// Knows how storages were made, so that their bytes can be given up and made again. Called with
/// the cache's mutex held, the static methods and active() excepted.
///
/// Note [Replay]: within a region that asks for it, every operator leaves a recipe. A storage has a
/// list of writers: the operator that made it and those that wrote it in place. Exact or refused:
///  - a storage may be given up as long as the writers' inputs have the bytes they had;
///  - what only factories and fills have written is not: extensions ask for such memory and fill it
///    by kernels that nobody sees. No more is what changes it from what was there;
///  - before one of those is written, all that was given up and needs it is made again;
///  - one that is freed lives on as a recipe if it has one; if not, and something that was given up
///    needs it, its bytes are kept; otherwise what needs it cannot be given up any more;
///  - what takes too many operators to make again has no recipe, so that chains stay short.
class Lineage final {
 public:
  Lineage(TensorCache& cache, c10::Device device) : cache_(cache), device_(device) {}

  /// What is to become of the tensors that operators of the calling thread make.
  static Wish wish();
  /// Sets it; returns what it was.
  static Wish set_wish(Wish wish);
  /// Whether operators of the calling thread leave recipes where no plan says who does.
  static bool recording() { return wish() == Wish::kRecompute; }

  /// Whether there are any recipes.
  bool active() const { return active_.load(std::memory_order_relaxed); }

  /// Ties the pictures of a recipe to the storages they show. `written` has none but itself.
  /// REQUIRES: the arguments are those it was written down from.
  void tie(Recipe& recipe, Arguments arguments, const Tensor* written);
  /// The tensor has been made; when it is given up is the caller's say.
  void made(Tensor& tensor, Writer writer, Replayable when);
  /// The same of one that has been written in place.
  void wrote(Tensor& tensor, Writer writer, Replayable when);

  /// What has to be made again before these uses; more may have to once that is there. When it is
  /// nothing, what was made of those that are about to be written cannot be made again any more.
  std::vector<std::shared_ptr<Origin>> to_replay(std::span<const Use> uses);
  /// One that has been given up, of all there are; null if there is none.
  std::shared_ptr<Origin> any_given_up();
  std::shared_ptr<Origin> find(const Tensor& tensor);

  /// The storage of the tensor is being freed. True when its bytes are kept for others, in a
  /// storage of ours with that deleter.
  bool outlives(Tensor& tensor, c10::DeleterFnPtr deleter);

  /// Forgets all recipes, unless something has been given up.
  void end_step();
  void clear();

 private:
  static constexpr std::size_t kMostCost = 48;  // plans have bounds of their own

  std::shared_ptr<Origin> find_or_add(Tensor& tensor) HEADWATER_REQUIRES(cache_.mutex());
  /// Whether all it needs can be had.
  static bool is_complete(const std::vector<std::shared_ptr<Origin>>& inputs);
  /// Whether it reads what is in the storage that it changes, which may come from nobody knows
  /// where.
  static bool builds_on_unseen(const Origin& origin, const Writer& writer);
  void add_dependent(Origin& origin, const std::shared_ptr<Origin>& dependent);
  void take_in(const std::shared_ptr<Origin>& origin, Writer writer, Replayable when)
      HEADWATER_REQUIRES(cache_.mutex());
  /// One that was given up and needs the bytes of this; also through others that have none.
  std::shared_ptr<Origin> dependent_given_up(const Origin& origin)
      HEADWATER_REQUIRES(cache_.mutex());
  /// It cannot be made again from now on, nor what needs it if its bytes are gone.
  void refuse(Origin& origin) HEADWATER_REQUIRES(cache_.mutex());
  void refuse_dependents(Origin& origin) HEADWATER_REQUIRES(cache_.mutex());

  TensorCache& cache_;
  const c10::Device device_;
  std::atomic<bool> active_{false};
  std::uint64_t num_written_ HEADWATER_GUARDED_BY(cache_.mutex()) = 0;
  std::unordered_map<const Tensor*, std::shared_ptr<Origin>> origins_
      HEADWATER_GUARDED_BY(cache_.mutex());
};

}  // namespace headwater::adapter
