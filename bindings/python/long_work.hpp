// Long work on a thread of its own, while the interpreter runs, hears of its progress and may end
// it.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/context.hpp"
#include "api/progress.hpp"
#include "bindings/python/python.hpp"

namespace numemu::python {

/// Of the environment (NUMEMU_DATA), else beside the installed package, else in the sources.
std::string data_folder();

/// Folders of what numemu ships and of its caches, as the program has them. With the interpreter's
/// lock.
api::Folders folders();

/// The caller's thread shows progress and messages and looks for KeyboardInterrupt ten times a
/// second, so that the work itself never waits for the interpreter.
class LongWork {
 public:
  /// `progress(phase, done, total)` and `say(text, warning)` are callables or None.
  LongWork(py::handle progress, py::handle say);

  /// For api/; its functions may be called by the thread of run() alone.
  api::Context context();
  /// Of work that counts by itself; both throw where the work is to end.
  void tell(const std::string& phase, double done, double total);
  api::OnProgress counter();
  /// Calls `hear` with the interpreter's lock, in the caller's thread, soon.
  void call(std::function<void()> hear);

  /// Runs the work to its end and throws what it throws. Where a callable raises or the user
  /// interrupts, the work ends at its next count or operator, and that exception is thrown.
  void run(const std::function<void()>& work);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  py::object progress_, say_;
  api::Folders folders_;
};

}  // namespace numemu::python
