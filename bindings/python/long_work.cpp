#include "bindings/python/long_work.hpp"

#include <omp.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string_view>
#include <thread>
#include <utility>

#include "bindings/python/python.hpp"
#include "emu/net/run_context.hpp"

namespace numemu::python {

std::string data_folder() {
  const char* told = std::getenv("NUMEMU_DATA");
  if (told != nullptr && *told != '\0') return told;
  const std::filesystem::path module =
      py::module_::import("numemu._core").attr("__file__").cast<std::string>();
  const std::filesystem::path beside = module.parent_path() / "data";
  std::error_code error;
  return std::filesystem::is_directory(beside, error) ? beside.string() : NUMEMU_DATA_DIR;
}

namespace {

constexpr auto kPause = std::chrono::milliseconds(100);

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

api::Folders folders() {
  const std::string cache = variable("NUMEMU_CACHE"), xdg = variable("XDG_CACHE_HOME"),
                    home = variable("HOME");
  return {.data = data_folder(),
          .cache = !cache.empty()  ? cache
                   : !xdg.empty()  ? xdg + "/numemu"
                   : !home.empty() ? home + "/.cache/numemu"
                                   : "/dev/null/numemu"};
}

struct LongWork::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  net::RunContext run;  ///< the work's, which ends by its `stop`
  struct State {
    std::string phase;
    double done = 0, total = 0;
  };
  std::optional<State> state;                  ///< the latest that is not shown
  std::vector<std::function<void()>> waiting;  ///< to be called by the interpreter's thread
};

LongWork::LongWork(py::handle progress, py::handle say)
    : shared_(std::make_shared<Shared>()),
      progress_(py::reinterpret_borrow<py::object>(progress)),
      say_(py::reinterpret_borrow<py::object>(say)),
      folders_(folders()) {}

void LongWork::tell(const std::string& phase, double done, double total) {
  const std::lock_guard lock(shared_->mutex);
  shared_->run.go_on();
  shared_->state = {phase, done, total};
}

api::OnProgress LongWork::counter() {
  return [this](std::string_view unit, double done, double total) {
    tell(std::string(unit), done, total);
  };
}

void LongWork::call(std::function<void()> hear) {
  const std::lock_guard lock(shared_->mutex);
  shared_->waiting.push_back(std::move(hear));
  shared_->changed.notify_all();
}

api::Context LongWork::context() {
  api::Context context{.folders = folders_};
  context.on_work = [this](const api::WorkState& at) {
    tell(std::string(at.phase), at.done, at.total);
  };
  const auto speak = [this](bool warning) {
    return [this, warning](const std::string& text) {
      if (!say_.is_none()) call([this, text, warning] { say_(text, warning); });
    };
  };
  context.say = speak(false);
  context.warn = speak(true);
  context.clock = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  return context;
}

void LongWork::run(const std::function<void()>& work) {
  const int threads = omp_get_max_threads();  // a new thread begins with those of the machine
  std::exception_ptr thrown, heard;
  std::thread worker([&] {
    omp_set_num_threads(threads);
    const net::RunScope scope(shared_->run);
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(shared_->mutex);
    shared_->ended = true;
    shared_->changed.notify_all();
  });
  const auto listen = [&] {
    std::optional<Shared::State> state;
    std::vector<std::function<void()>> waiting;
    {
      const std::lock_guard lock(shared_->mutex);
      state = std::exchange(shared_->state, std::nullopt);
      waiting = std::exchange(shared_->waiting, {});
    }
    if (heard) return;
    try {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      for (const std::function<void()>& hear : waiting) hear();
      if (state && !progress_.is_none()) progress_(state->phase, state->done, state->total);
    } catch (...) {
      heard = std::current_exception();
      const std::lock_guard lock(shared_->mutex);
      shared_->run.stop = true;
    }
  };
  for (bool ended = false; !ended;) {
    {
      const py::gil_scoped_release released;
      std::unique_lock lock(shared_->mutex);
      shared_->changed.wait_for(lock, kPause, [&] { return shared_->ended; });
      ended = shared_->ended;
    }
    listen();
  }
  {
    const py::gil_scoped_release released;
    worker.join();
  }
  if (heard) std::rethrow_exception(heard);
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace numemu::python
