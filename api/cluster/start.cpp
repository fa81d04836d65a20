// POSIX calls: the standard library starts no programs.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "api/cluster/plan.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/output_files.hpp"

extern char** environ;

namespace numemu::api {
namespace {

struct Ended {
  int error = 0;   ///< of the start
  int status = 0;  ///< the exit status; 128 + the signal
  std::string out;
};

/// Runs a program of PATH to its end. `out`: what it prints on both streams is kept, else its
/// standard output goes where messages go.
Ended run_program(std::vector<std::string> words, bool out) {
  Ended ended;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2] = {-1, -1};
  if (out && ::pipe2(ends, O_CLOEXEC) != 0) throw file_error(fmt::format("{}: no pipe", words[0]));
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out ? ends[1] : STDERR_FILENO, STDOUT_FILENO);
  if (out) posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
  pid_t child = 0;
  ended.error =
      ::posix_spawnp(&child, words[0].c_str(), &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (out) {
    ::close(ends[1]);
    char part[4096];
    for (ssize_t got; (got = ::read(ends[0], part, sizeof part)) != 0;) {
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) break;
      ended.out.append(part, static_cast<std::size_t>(got));
    }
    ::close(ends[0]);
  }
  int status = 0;
  while (ended.error == 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

/// Of the files that rows and trials are appended to.
std::uintmax_t stored_bytes(const std::string& folder) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".jsonl") bytes += entry.file_size();
  }
  return bytes;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

void require_started(const Ended& ended, const std::string& program, const std::string& package) {
  if (ended.error == ENOENT)
    throw file_error(fmt::format("{} is not installed ({})", program, package));
  if (ended.error != 0)
    throw file_error(fmt::format("{}: {}", program, std::strerror(ended.error)));
}

/// The number of the job that sbatch made.
std::string submit_script(const std::string& script, const std::string& after) {
  std::vector<std::string> words = {"sbatch", "--parsable"};
  if (!after.empty()) words.push_back("--dependency=afterany:" + after);
  words.push_back(script);
  const Ended ended = run_program(words, true);
  require_started(ended, "sbatch", "Debian: apt-get install slurm-client; or use --parallel");
  // "123" or "123;cluster", behind warnings maybe.
  std::string id = ended.out.substr(0, ended.out.find_last_not_of("\n") + 1);
  id = id.substr(id.rfind('\n') + 1);
  id = id.substr(0, id.find(';'));
  if (ended.status != 0 || id.empty() || id.find_first_not_of("0123456789") != std::string::npos)
    throw file_error(
        fmt::format("{}: sbatch refused it (status {}): {}; what a site asks for: --sbatch "
                    "key=value, as in partition=long or account=NAME; without Slurm: --parallel",
                    script, ended.status, first_line(ended.out)));
  return id;
}

/// Throws Error where jobs that an earlier call submitted for the folder are not through.
void require_ended(const std::string& jobs, const std::string& out) {
  if (!std::filesystem::exists(jobs)) return;
  const std::string ids = first_line(read_text(jobs));
  if (ids.empty() || ids.find_first_not_of("0123456789,") != std::string::npos) return;
  const Ended ended = run_program({"squeue", "-h", "-o", "%A", "-j", ids}, true);
  if (ended.error == 0 && ended.status == 0 && !ended.out.empty())
    throw file_error(fmt::format(
        "{}: its jobs {} are queued or running; wait for them, or: scancel {}", out, ids, ids));
}

}  // namespace

Submitted submit(const ClusterPlan& plan) {
  const std::string folder = plan.out + "/slurm", jobs = folder + "/jobs";
  require_ended(jobs, plan.out);
  make_folder(folder);
  write_atomically(folder + "/array.sh", {array_script(plan)});
  write_atomically(folder + "/last.sh", {last_script(plan)});
  Submitted submitted;
  std::string ids;
  const auto start = [&](const std::string& script, const std::string& after) {
    const std::string id = submit_script(folder + script, after);
    ids += (ids.empty() ? "" : ",") + id;
    write_atomically(jobs, {ids, "\n"});
    return id;
  };
  std::string after;
  for (std::int64_t round = 0; round < plan.rounds; ++round) {
    after = start("/array.sh", after);
    submitted.arrays.push_back(after);
  }
  submitted.last = start("/last.sh", after);
  return submitted;
}

std::int64_t run_parallel(const ClusterPlan& plan, bool bar) {
  const std::string package = "Debian: apt-get install parallel";
  const Ended version = run_program({"parallel", "--version"}, true);
  require_started(version, "GNU parallel", package);
  if (!version.out.starts_with("GNU parallel"))
    throw file_error("parallel: expected GNU parallel (" + package + "), found another program");
  const std::string folder = plan.out + "/parallel";
  make_folder(folder);
  write_atomically(folder + "/tasks", {parallel_lines(plan)});
  std::vector<std::string> words = {
      "parallel",   "--jobs",         std::to_string(plan.at_once), "--joblog", folder + "/joblog",
      "--arg-file", folder + "/tasks"};
  if (bar) words.emplace_back("--bar");
  for (std::int64_t round = 1;; ++round) {
    const std::uintmax_t before = stored_bytes(plan.out);
    const Ended ended = run_program(words, false);
    require_started(ended, "GNU parallel", package);
    constexpr int kMostCounted = 101;  // parallel(1): more than a hundred jobs failed
    if (ended.status > kMostCounted)
      throw file_error(
          fmt::format("GNU parallel ended with status {}; see {}", ended.status, folder));
    if (round == plan.rounds || stored_bytes(plan.out) == before) return ended.status;
  }
}

}  // namespace numemu::api
