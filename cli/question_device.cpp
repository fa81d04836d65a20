#include "cli/question_device.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "cli/command.hpp"
#include "formats/error.hpp"

namespace numemu::cli {
namespace {

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (pipe(ends) != 0)
      throw Error(fmt::format("--device: cannot open a pipe: {}", std::strerror(errno)));
    read = ends[0];
    write = ends[1];
  }
};

}  // namespace

std::unique_ptr<QuestionDevice> QuestionDevice::of_command(const std::string& command,
                                                           double timeout) {
  const Pipe questions, answers;
  const int process = fork();
  if (process < 0) throw Error(fmt::format("--device: cannot start: {}", std::strerror(errno)));
  if (process == 0) {
    // A group of its own, so that the shell's children end with it.
    setpgid(0, 0);
    std::signal(SIGPIPE, SIG_DFL);
    dup2(questions.read, STDIN_FILENO);
    dup2(answers.write, STDOUT_FILENO);
    for (const int end : {questions.read, questions.write, answers.read, answers.write}) close(end);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  setpgid(process, process);
  close(questions.read);
  close(answers.write);
  return std::unique_ptr<QuestionDevice>(
      new QuestionDevice(questions.write, answers.read, process, timeout));
}

std::unique_ptr<QuestionDevice> QuestionDevice::of_standard_streams(double timeout) {
  return std::unique_ptr<QuestionDevice>(
      new QuestionDevice(STDOUT_FILENO, STDIN_FILENO, -1, timeout));
}

QuestionDevice::~QuestionDevice() {
  if (process_ < 0) return;
  close(input_);
  close(output_);
  // A device that reads its questions to their end has ended; any other is told to.
  constexpr int kPatience = 50;
  for (int waited = 0; waited < kPatience; ++waited) {
    if (waitpid(process_, nullptr, WNOHANG) != 0) return;
    usleep(2000);
  }
  kill(-process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

void QuestionDevice::write(std::string_view text) {
  const double until = seconds() + timeout_;
  while (!text.empty()) {
    pollfd ready{input_, POLLOUT, 0};
    const double left = until - seconds();
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left * 1e3) + 1) == 0)
      throw Error(fmt::format("device: read no question in {} seconds (--timeout)", timeout_));
    const ssize_t count = ::write(input_, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw Error("device: ended before it had read all questions");
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::size_t QuestionDevice::read(char* to, std::size_t most) {
  const double until = seconds() + timeout_;
  for (;;) {
    pollfd ready{output_, POLLIN, 0};
    const double left = until - seconds();
    const int found = left <= 0 ? 0 : poll(&ready, 1, static_cast<int>(left * 1e3) + 1);
    if (found == 0)
      throw Error(fmt::format("device: no answer in {} seconds (--timeout)", timeout_));
    if (found < 0 && errno == EINTR) continue;
    const ssize_t count = ::read(output_, to, most);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(fmt::format("device: {}", std::strerror(errno)));
    return static_cast<std::size_t>(count);
  }
}

}  // namespace numemu::cli
