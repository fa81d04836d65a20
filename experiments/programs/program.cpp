// POSIX calls: the standard library starts no programs.
#include "experiments/programs/program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "formats/error.hpp"

extern char** environ;

namespace numemu::experiments {
namespace {

constexpr int kNoProgram = 127;  // of a child that could not become the program

}  // namespace

bool EndedProgram::missing() const {
  return error == ENOENT || (error == 0 && status == kNoProgram);
}

EndedProgram run_program(std::vector<std::string> words, ProgramOutput output) {
  const bool kept = output == ProgramOutput::kept;
  EndedProgram ended;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2] = {-1, -1};
  if (kept && ::pipe2(ends, O_CLOEXEC) != 0) throw file_error(fmt::format("{}: no pipe", words[0]));
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, kept ? ends[1] : STDERR_FILENO, STDOUT_FILENO);
  if (kept) posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
  pid_t child = 0;
  ended.error =
      ::posix_spawnp(&child, words[0].c_str(), &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (kept) {
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

WorkFolder::WorkFolder()
    : path_((std::filesystem::temp_directory_path() / "numemu-XXXXXX").string()) {
  if (::mkdtemp(path_.data()) == nullptr)
    throw file_error(fmt::format("{}: cannot be created ({})", path_, std::strerror(errno)));
}

WorkFolder::~WorkFolder() {
  std::error_code none;
  std::filesystem::remove_all(path_, none);
}

}  // namespace numemu::experiments
