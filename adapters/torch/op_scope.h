#pragma once

#include "headwater/offload/conductor.h"
#include "lineage.h"
#include "op_needs.h"
#include "op_traits.h"
#include "tensor_walk.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Storage.h>
#include <c10/util/Exception.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/SmallVector.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace headwater::adapter {

class SessionState;

/// One operator under management: its tensors are on the device and pinned while this lives.
/// For one thread; knows the operator that runs on it.
class OpScope {
 public:
  OpScope(SessionState& session, const c10::OperatorHandle& op, const OpTraits& traits);
  ~OpScope();
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;
  OpScope(OpScope&&) = delete;
  OpScope& operator=(OpScope&&) = delete;

  /// The scope open on this thread, if any.
  static OpScope* current();

  /// Fetches and pins the tensors among the arguments.
  void acquire(Arguments arguments);
  /// The same; false, with nothing pinned, where there is no room.
  [[nodiscard]] bool try_acquire(Arguments arguments);
  /// The same when nothing has to move; false, with nothing pinned, when something has to.
  /// `work_out_key` and `box` give the operator's key and its arguments, in case they are needed.
  bool acquire_resident(c10::ArrayRef<TensorUse> tensors,
                        c10::function_ref<OpKey()> work_out_key,
                        c10::function_ref<torch::jit::Stack()> box);
  /// Whether it is to leave a recipe, by a plan or else by the region it runs in.
  [[nodiscard]] bool leaves_recipe();
  /// Writes down how it can run again, once its tensors are there.
  void leave_recipe(c10::DispatchKeySet keys);
  /// Whether its result is to take the bytes of its first argument, by a plan.
  [[nodiscard]] bool inherits() const { return inherits_; }
  /// A storage around the device bytes of its first argument, which has been given up then.
  /// REQUIRES: inherits(), and acquire() has succeeded.
  [[nodiscard]] c10::Storage take_inheritance();
  /// Adopts the tensors among the results, unpins all and restores the budget.
  void finish(c10::ArrayRef<c10::IValue> results);
  /// The same after acquire_resident().
  void finish_resident(c10::ArrayRef<const at::Tensor*> results);
  /// Asks the user's policy about its first result, if that has not been done for such operators.
  void ask_policy(const at::Tensor& result) {
    if (to_ask_about_) {
      ask_policy_now(result);
    }
  }
  void ask_policy(Arguments results) {
    if (to_ask_about_ && !results.empty() && results.front().isTensor()) {
      ask_policy_now(results.front().toTensor());
    }
  }
  /// Adopts and pins the results, and passes on all pins: the operator goes on after it returns.
  [[nodiscard]] std::vector<Use> pass_on_pins(c10::ArrayRef<c10::IValue> results);

  /// Whether what it allocated while it ran passed the budget.
  bool ran_short() const { return ran_short_; }
  /// Whether it may run again when it fails for want of room. REQUIRES: acquire().
  bool can_begin_again() const { return can_begin_again_; }
  /// Sends away tensors that are not the operator's, for another try: the device had no room for it
  /// although the budget has. Some of them at first, all of them the second time. False after that,
  /// where it is the budget, or where the operator may not run twice.
  [[nodiscard]] bool try_again(const c10::OutOfMemoryError& error);

  /// Charges bytes the operator is about to allocate.
  Reservation admit(std::size_t bytes);

 private:
  enum class Waiting : unsigned char { kAllowed, kOver };
  /// No scope is open on this thread while it lives.
  class NoScope {
   public:
    NoScope();
    ~NoScope();
    NoScope(const NoScope&) = delete;
    NoScope& operator=(const NoScope&) = delete;
    NoScope(NoScope&&) = delete;
    NoScope& operator=(NoScope&&) = delete;

   private:
    OpScope* const before_;
  };

  /// Throws OutOfMemory.
  void bring(Arguments arguments);
  /// See Turns::Attempt.
  std::optional<std::uint64_t> try_bring(Waiting waiting, OpKeyOnce& key)
      HEADWATER_EXCLUDES(cache_.mutex());
  std::optional<std::uint64_t> try_admit(const Request& request,
                                         Waiting waiting,
                                         Reservation& charge) HEADWATER_EXCLUDES(cache_.mutex());
  /// Bytes to send away for another try.
  std::size_t likely_to_help() const;
  void throw_shortage(Shortage shortage);
  void ask_policy_now(const at::Tensor& result);
  void mark_pinned() HEADWATER_REQUIRES(cache_.mutex());
  void unpin() noexcept HEADWATER_REQUIRES(cache_.mutex());
  void find_tensors(Arguments arguments, StreamRef stream) HEADWATER_REQUIRES(cache_.mutex());
  void find_storage(c10::StorageImpl& storage,
                    Adoption adoption,
                    AccessKind access,
                    StreamRef stream) HEADWATER_REQUIRES(cache_.mutex());
  Tensor* adopt_storage(c10::StorageImpl& storage, Adoption adoption, StreamRef stream)
      HEADWATER_REQUIRES(cache_.mutex());
  /// The same of a result, which may be one of the arguments.
  Tensor* adopt_result(c10::StorageImpl& storage, Adoption adoption, StreamRef stream)
      HEADWATER_REQUIRES(cache_.mutex());
  void unpin_and_settle(StreamRef stream) HEADWATER_REQUIRES(cache_.mutex());
  /// Bytes of the tensors the operator was given, each counted once.
  std::size_t pinned_bytes();
  /// Tells the conductor that the operator begins, or what it has made.
  void note_begin(OpKeyOnce& key, c10::function_ref<Arguments()> box)
      HEADWATER_REQUIRES(cache_.mutex());
  /// The operator begins again, boxed, on this thread: it has been told of already.
  void hand_on();
  void note_end() HEADWATER_REQUIRES(cache_.mutex());
  /// What the user wishes for its results, by the region it runs in or else by policy.
  Wish wish_for(OpKeyOnce& key, Phase phase);
  /// On the CPU nobody measures workspaces, but every allocation is admitted. Zero elsewhere.
  std::size_t admitted_workspace();
  void adopt(c10::ArrayRef<c10::IValue> results, StreamRef stream, std::vector<Use>* pinned)
      HEADWATER_REQUIRES(cache_.mutex());
  void release() noexcept;
  /// Says that work the program does not know of uses its tensors: later work on other streams has
  /// to wait for it.
  void mark_used_unseen() HEADWATER_REQUIRES(cache_.mutex());
  /// The tensor whose bytes its result can take; null when there is none.
  Tensor* find_testator() HEADWATER_REQUIRES(cache_.mutex());
  bool any_absent() const HEADWATER_REQUIRES(cache_.mutex());
  /// False, with nothing pinned, when something would have to move.
  bool try_acquire_resident() HEADWATER_REQUIRES(cache_.mutex());
  /// Whether it can only be boxed, since it leaves a recipe or changes what recipes need.
  bool must_be_boxed(c10::ArrayRef<TensorUse> tensors) HEADWATER_REQUIRES(cache_.mutex());
  /// Whether something has to be made again before it can run.
  bool must_replay_first() HEADWATER_REQUIRES(cache_.mutex());
  void write_recipe(c10::DispatchKeySet keys);
  /// Finds the one tensor it writes, if any. False when there are more.
  bool find_written() HEADWATER_REQUIRES(cache_.mutex());
  /// Remembers the results that are in storages of their own, before they are adopted.
  void find_fresh(c10::ArrayRef<c10::IValue> results) HEADWATER_REQUIRES(cache_.mutex());
  /// Ties its recipe to what it has made or written.
  void tie_recipe() HEADWATER_REQUIRES(cache_.mutex());
  /// Remembers how many places there are to find, or says that the result can be packed for them.
  void count_places(Arguments arguments);
  void pack_places(const at::Tensor& result) HEADWATER_REQUIRES(cache_.mutex());

  SessionState& session_;
  TensorCache& cache_;
  const c10::OperatorHandle& op_;
  const OpTraits& traits_;
  OpScope* const outer_;
  Arguments arguments_;
  std::optional<c10::function_ref<torch::jit::Stack()>> box_;  // makes them when there are none
  StreamRef stream_ = kDefaultStream;                          // when it was acquired
  c10::SmallVector<Use, 16> uses_;
  bool pinned_ = false;
  Reservation reserved_;
  bool inherits_ = false;
  bool ran_short_ = false;
  Reservation inherited_;                    // of the bytes that its result takes
  std::optional<std::size_t> pinned_bytes_;  // worked out when somebody asks
  std::size_t allocated_bytes_ = 0;
  std::size_t admitted_bytes_ = 0;  // the same with what was reserved for it
  unsigned num_further_tries_ = 0;
  bool can_begin_again_ = false;  // known once it has been acquired
  std::size_t num_places_ = 0;    // see OpTraits::finds_places; zero: unknown
  OpNeeds needs_;
  // see Note [Replay]
  std::vector<std::shared_ptr<Origin>> to_replay_;
  std::shared_ptr<Recipe> recipe_;           // null: it leaves none
  Replayable replayable_ = Replayable::kNo;  // what that makes of its results
  Tensor* written_ = nullptr;                // by it, in place
  c10::SmallVector<std::pair<std::size_t, c10::StorageImpl*>, 2> fresh_;
  // set while steps are watched
  std::optional<Conductor::Op> played_;
  std::optional<OpKey> to_ask_about_;  // the user's policy has not been asked yet
  c10::SmallVector<Tensor*, 4> made_;
};

}  // namespace headwater::adapter
