#include "cli/command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "cli/completion.hpp"
#include "cli/manual.hpp"
#include "cli/talk.hpp"
#include "emu/unit/cpu.hpp"
#include "emu/unit/description/json.hpp"
#include "formats/error.hpp"
#include "formats/version.hpp"

namespace numemu::cli {
namespace {

/// Of each ErrorKind. 1 is a missed verdict, so that scripts tell it from every error.
constexpr int kExitCodes[] = {kBadUsage, kBadUsage, kBadUsage, kBadUsage, kBadUsage};

int complain(const Error& error) {
  say("numemu: {}", error.what());
  return kExitCodes[static_cast<std::size_t>(error.kind())];
}

int complain_about_output(int error) {
  if (error == EPIPE) {  // the reader closed the pipe: end as by the default signal
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  return complain(
      file_error(fmt::format("cannot write to standard output: {}", std::strerror(error))));
}

/// What was printed may still wait in a buffer, and be lost at the end without a word.
int finish(int code) {
  errno = 0;
  const bool lost = std::ferror(stdout) != 0;
  if (std::fflush(stdout) == 0 && !lost) return code;
  return complain_about_output(errno != 0 ? errno : EIO);
}

bool finished = false;

/// A library that calls exit() (libgomp, where a thread cannot be started) must not end with the
/// code of a missed verdict.
void refuse_to_vanish() {
  if (!finished) std::_Exit(kBadUsage);
}

/// If a standard stream is closed, the next opened file would get its number and, with it, the
/// printed text. Opens /dev/null instead, in the direction that fails.
void hold_standard_streams() {
  for (int file = 0; file <= 2; ++file) {
    // The lowest free number is `file`, as all below are taken.
    if (fcntl(file, F_GETFD) < 0 && errno == EBADF)
      (void)open("/dev/null", file == 0 ? O_WRONLY : O_RDONLY);
  }
}

/// A file that cannot grow and a closed pipe become write errors instead of signals, which leave no
/// half-written file and are ignored on stderr.
void survive_full_streams() {
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

int run(int argc, char** argv, Group own, void (*add_commands)(Program&)) {
  hold_standard_streams();
  survive_full_streams();
  const CommandRow* command = command_of(argc, argv);
  if (command != nullptr && command->group != own) {
    const char* const why = become(command->program, argv);
    if (why == nullptr) {
      return complain(
          usage_error(fmt::format("command '{}' is not built yet; './numemu {}' builds and runs it",
                                  command->name, command->name)));
    }
    return complain(file_error(fmt::format("{}: {}", command->program, why)));
  }
  if (!unit::has_least_vectors())
    return complain(usage_error(
        "this CPU is too old: numemu needs SSE4.2, PCLMULQDQ and AES (x86 since 2010)"));
  // Batches come and go by the megabyte: memory that is given back each time is faulted in each
  // time, a tenth of a training step.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  return run_commands(argc, argv, add_commands);
}

/// Allowed on a small machine too, to check that results do not depend on the number of threads.
constexpr int kFewThreads = 16;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Throws Error where the system refuses the threads that will be used; OpenMP would end the
/// program.
void require_threads() {
  // Also of OMP_NUM_THREADS.
  omp_set_num_threads(std::min(omp_get_max_threads(), std::max(omp_get_num_procs(), kFewThreads)));
  const int wanted = omp_get_max_threads() - 1;  // beside this one
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(wanted));
  std::atomic<bool> go = false;
  std::string error;
  try {
    for (int i = 0; i < wanted; ++i) threads.emplace_back([&go] { go.wait(false); });
  } catch (const std::system_error& failed) {
    error = failed.code().message();
  }
  go = true;
  go.notify_all();
  for (std::thread& thread : threads) thread.join();
  if (error.empty()) return;
  throw usage_error(fmt::format("cannot start {} threads ({}), only {}; see --threads", wanted + 1,
                                error, threads.size() + 1));
}

}  // namespace

int run_commands(int argc, char** argv, void (*add_commands)(Program&)) {
  const std::string version =
      fmt::format("numemu {} (numerics {})", NUMEMU_VERSION, kNumericsVersion);
  Program program("numemu",
                  "numemu: bit-exact emulation of number formats, matrix units and networks",
                  version);
  for (const CommandRow& row : kCommands) program.list(row.name, row.help);
  add_commands(program);
  try {
    // For shells and for the installation.
    const std::string first = argc > 1 ? argv[1] : "";
    if (first == "--complete") {
      fmt::print("{}", completions(program, {argv + 2, argv + argc}));
      return finish(kFine);
    }
    if (const std::string manual = "--manual="; first.starts_with(manual)) {
      const std::string date = first.substr(manual.size());
      fmt::print("{}", manual_page(program, argc > 2 ? argv[2] : "", {version, date}));
      return finish(kFine);
    }
    return finish(program.parse(argc, argv)());
  } catch (const unit::DescriptionErrors& errors) {
    int code = kBadUsage;
    for (const std::string& line : errors.lines()) code = complain(Error(line, errors.kind()));
    return code;
  } catch (const std::filesystem::filesystem_error&) {
    return complain(error_of(std::current_exception()));
  } catch (const std::system_error& error) {  // fmt tells a failed write so
    if (std::ferror(stdout) != 0) return complain_about_output(error.code().value());
    return complain(error_of(std::current_exception()));
  } catch (const std::exception&) {
    return complain(error_of(std::current_exception()));
  }
}

int run_program(int argc, char** argv, Group own, void (*add_commands)(Program&)) {
  std::atexit(refuse_to_vanish);
  const int code = run(argc, argv, own, add_commands);
  finished = true;
  return code;
}

std::shared_ptr<const std::optional<std::int64_t>> add_threads(Command& command) {
  auto threads = std::make_shared<std::optional<std::int64_t>>();
  command.option("--threads T", *threads, "Number of threads (the results do not depend on it)")
      .whole(1, 1024);
  command.before_run([threads] {
    if (*threads) omp_set_num_threads(static_cast<int>(**threads));
    require_threads();
  });
  return threads;
}

std::string data_folder() {
  const std::string chosen = variable("NUMEMU_DATA");
  if (!chosen.empty()) return chosen;
  // As installed, else in the tree that the program was built from.
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto installed = (program.parent_path() / NUMEMU_INSTALLED_DATA).lexically_normal();
  return std::filesystem::is_directory(installed, error) ? installed.string() : NUMEMU_DATA_DIR;
}

std::string cache_folder() {
  const std::string chosen = variable("NUMEMU_CACHE"), xdg = variable("XDG_CACHE_HOME"),
                    home = variable("HOME");
  if (!chosen.empty()) return chosen;
  if (!xdg.empty()) return xdg + "/numemu";
  if (!home.empty()) return home + "/.cache/numemu";
  return "/dev/null/numemu";  // no folder can be made there: everything goes on without a cache
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace numemu::cli
