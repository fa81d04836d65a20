// What is made once and found again by its key: formats, block formats, scale rules, units, and
// tables of formats. It lives as long as the program, or as a scope of its caller.
#pragma once
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace numemu {

class Interned {
 public:
  /// The T of the key, which `make` gives as a std::unique_ptr<const T> where none is kept yet.
  /// Thread-safe.
  template <class T, class Key, class Make>
  static const T& find(const Key& key, const Make& make) {
    Interned& own = of_thread();
    for (Interned* at = &own; at != nullptr; at = at->outer_) {
      const std::lock_guard lock(at->mutex_);
      auto& made = at->map_of<T, Key>();
      if (const auto found = made.find(key); found != made.end()) return *found->second;
    }
    std::unique_ptr<const T> fresh = make();  // may itself find what it consists of
    const std::lock_guard lock(own.mutex_);
    return *own.map_of<T, Key>().try_emplace(key, std::move(fresh)).first->second;
  }

 private:
  friend class InternScope;
  struct AnyMap {
    virtual ~AnyMap() = default;
  };
  template <class T, class Key>
  struct Map : AnyMap {
    std::map<Key, std::unique_ptr<const T>> made;
  };

  explicit Interned(Interned* outer) : outer_(outer) {}
  static Interned& of_thread() {
    static Interned* const program = new Interned(nullptr);  // never ends: what never ends uses it
    return scope_ != nullptr ? *scope_ : *program;
  }
  static std::size_t next_number() {
    static std::atomic<std::size_t> next = 0;
    return next++;
  }

  template <class T, class Key>
  std::map<Key, std::unique_ptr<const T>>& map_of() {
    static const std::size_t number = next_number();
    if (maps_.size() <= number) maps_.resize(number + 1);
    if (!maps_[number]) maps_[number] = std::make_unique<Map<T, Key>>();
    return static_cast<Map<T, Key>&>(*maps_[number]).made;
  }

  inline static thread_local Interned* scope_ = nullptr;  // null: the program's
  Interned* outer_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<AnyMap>> maps_;
};

/// What this thread finds for the first time lives as long as the scope. A search opens one for
/// each candidate: nothing of a candidate, such as a described format, a block format of it or a
/// recipe that names it, may be used afterwards. What is kept refers only to what lives as long;
/// tables that other threads of a loop make are copies of numbers and live as long as the program.
class InternScope {
 public:
  InternScope() : InternScope(std::unique_ptr<Interned>(new Interned(&Interned::of_thread()))) {}
  ~InternScope() { Interned::scope_ = before_; }
  InternScope(const InternScope&) = delete;
  InternScope& operator=(const InternScope&) = delete;

  /// Calls `make` outside all scopes of this thread: for tables that live as long as the program.
  template <class Make>
  static auto for_program(const Make& make) {
    const InternScope none(nullptr);
    return make();
  }

 private:
  explicit InternScope(std::unique_ptr<Interned> own)
      : own_(std::move(own)), before_(std::exchange(Interned::scope_, own_.get())) {}
  std::unique_ptr<Interned> own_;
  Interned* before_;
};

}  // namespace numemu
