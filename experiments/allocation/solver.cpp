// Solvers of allocations by name: our own, and the program cbc if it is installed.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "experiments/allocation/front.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/suggest.hpp"

extern char** environ;

namespace numemu::experiments {
namespace {

/// A folder that goes with its contents.
class WorkFolder {
 public:
  WorkFolder() : path_((std::filesystem::temp_directory_path() / "numemu-cbc-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr)
      throw Error(fmt::format("{}: cannot be created ({})", path_, std::strerror(errno)));
  }
  ~WorkFolder() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Runs cbc on the program without gaps, silently.
void run_cbc(const std::string& program, const std::string& solution) {
  std::vector<std::string> words = {"cbc", program, "ratioGap", "0",     "allowableGap",
                                    "0",   "solve", "solution", solution};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, stream, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, "cbc", &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  int status = 0;
  while (error == 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (error == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (error == ENOENT || (error == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127))
    throw Error(
        "--set: solver: the program cbc is not installed (Debian: apt-get install coinor-cbc); "
        "solver=exact needs none");
  throw Error(fmt::format("cbc failed ({})",
                          error != 0 ? std::strerror(error) : fmt::format("status {}", status)));
}

}  // namespace

std::optional<policies::Allocation> solve(const policies::AllocationTable& table,
                                          const std::vector<double>& limits,
                                          const std::string& solver) {
  if (solver == "exact" || solver == "greedy")
    return policies::allocate(table, limits, policies::parse_allocation_method(solver));
  if (solver != "cbc")
    throw Error("--set: solver: " + unknown_name("solver", solver, {"exact", "greedy", "cbc"}));
  const WorkFolder folder;
  const std::string program = folder / "program.lp", solution = folder / "solution.txt";
  write_atomically(program, {policies::allocation_lp(table, limits)});
  run_cbc(program, solution);
  const auto found = policies::read_cbc_solution(table, read_text(solution), "cbc");
  // The solver keeps limits to 1e-7 of their size only.
  if (found && !policies::keeps_limits(found->costs, limits))
    return policies::allocate(table, limits);
  return found;
}

}  // namespace numemu::experiments
