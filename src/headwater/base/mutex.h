#pragma once

#include <atomic>
#include <mutex>

// Lock rules the compiler checks (clang -Wthread-safety); other compilers see nothing.
#if defined(__clang__)
#define HEADWATER_ANNOTATION(x) __attribute__((x))
#else
#define HEADWATER_ANNOTATION(x)
#endif

#define HEADWATER_GUARDED_BY(mutex) HEADWATER_ANNOTATION(guarded_by(mutex))
#define HEADWATER_REQUIRES(...) HEADWATER_ANNOTATION(requires_capability(__VA_ARGS__))
#define HEADWATER_EXCLUDES(...) HEADWATER_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace headwater {

/// std::mutex with annotations, and a say in how threads wait for one that is taken.
class HEADWATER_ANNOTATION(capability("mutex")) Mutex {
 public:
  /// Waits for a mutex and returns with it held.
  using Wait = void (*)(std::mutex&);
  /// For a host program whose threads may hold a lock of its own, such as an interpreter's: waiting
  /// with it held could wait forever for a thread that needs it. Applies to every mutex.
  static void set_wait(Wait wait) { current_wait.store(wait, std::memory_order_relaxed); }

  void lock() HEADWATER_ANNOTATION(acquire_capability()) {
    if (!mutex_.try_lock()) {
      current_wait.load(std::memory_order_relaxed)(mutex_);
    }
  }
  void unlock() HEADWATER_ANNOTATION(release_capability()) { mutex_.unlock(); }
  bool try_lock() HEADWATER_ANNOTATION(try_acquire_capability(true)) { return mutex_.try_lock(); }
  /// Tells the analysis what it cannot see: a callback runs while its caller holds the mutex.
  void assume_held() const HEADWATER_ANNOTATION(assert_capability(this)) {}

 private:
  static inline std::atomic<Wait> current_wait{[](std::mutex& mutex) { mutex.lock(); }};
  std::mutex mutex_;
};

/// Holds a Mutex for a scope.
class HEADWATER_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HEADWATER_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() HEADWATER_ANNOTATION(release_capability()) { mutex_.unlock(); }

  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  MutexLock(MutexLock&&) = delete;
  MutexLock& operator=(MutexLock&&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace headwater
