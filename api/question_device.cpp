#include "api/question_device.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>

#include "formats/error.hpp"

namespace numemu::api {
namespace {

constexpr int kInterrupts[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw Error(fmt::format("--device: cannot open a pipe: {}", std::strerror(errno)));
    read = ends[0];
    write = ends[1];
  }
};

[[noreturn]] void become_device(const char* command, int questions, int answers) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // for a guard that was killed
  for (const int signal : kInterrupts) std::signal(signal, SIG_DFL);
  std::signal(SIGPIPE, SIG_DFL);
  dup2(questions, STDIN_FILENO);
  dup2(answers, STDOUT_FILENO);
  execl("/bin/sh", "sh", "-c", command, nullptr);
  _exit(127);
}

/// A process between numemu and the device: it outlives numemu, whatever ends that, and then ends
/// the group of the device. Only calls that are safe after fork() in a program with threads.
[[noreturn]] void guard(const char* command, int questions, int answers, int life) {
  setpgid(0, 0);
  prctl(PR_SET_NAME, "device-guard");  // killing numemu by name spares it
  for (const int signal : kInterrupts) std::signal(signal, SIG_IGN);
  const pid_t device = fork();
  if (device == 0) become_device(command, questions, answers);
  if (device < 0) _exit(1);
  setpgid(device, device);
  // Who holds an end of these pipes keeps the other side waiting.
  const int most = static_cast<int>(sysconf(_SC_OPEN_MAX));
  for (int file = 0; file < std::clamp(most, 256, 4096); ++file) {
    if (file != life) close(file);
  }
  char byte = 0;
  while (::read(life, &byte, 1) < 0 && errno == EINTR) {
  }
  // A device that reads its questions to their end ends by itself. Until it is reaped its number
  // stays that of its group.
  constexpr int kPatience = 50;
  siginfo_t ended = {};
  for (int waited = 0; waited < kPatience && ended.si_pid == 0; ++waited) {
    usleep(2000);
    waitid(P_PID, static_cast<id_t>(device), &ended, WEXITED | WNOHANG | WNOWAIT);
  }
  kill(-device, SIGKILL);
  waitpid(device, nullptr, 0);
  _exit(0);
}

}  // namespace

bool QuestionDevice::wait_for(int file, short event) const {
  constexpr double kLongest = 1e6;  // seconds, in milliseconds an int
  for (;;) {
    pollfd ready{file, event, 0};
    const double left = std::min(until_ - clock_(), kLongest);
    if (left <= 0) return false;
    const int found = poll(&ready, 1, static_cast<int>(left * 1e3) + 1);
    if (found > 0 || (found < 0 && errno != EINTR)) return true;
  }
}

std::unique_ptr<QuestionDevice> QuestionDevice::of_command(const std::string& command,
                                                           double timeout, Clock clock) {
  const Pipe questions, answers, life;
  const int process = fork();
  if (process < 0) throw Error(fmt::format("--device: cannot start: {}", std::strerror(errno)));
  if (process == 0) {
    close(life.write);
    guard(command.c_str(), questions.read, answers.write, life.read);
  }
  for (const int end : {questions.read, answers.write, life.read}) close(end);
  return std::unique_ptr<QuestionDevice>(new QuestionDevice(
      questions.write, answers.read, life.write, process, timeout, std::move(clock)));
}

std::unique_ptr<QuestionDevice> QuestionDevice::of_standard_streams(double timeout, Clock clock) {
  return std::unique_ptr<QuestionDevice>(
      new QuestionDevice(STDOUT_FILENO, STDIN_FILENO, -1, -1, timeout, std::move(clock)));
}

QuestionDevice::~QuestionDevice() {
  if (guard_ < 0) return;
  for (const int end : {input_, output_, life_}) close(end);
  while (waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void QuestionDevice::write(std::string_view text) {
  until_ = clock_() + timeout_;
  while (!text.empty()) {
    if (!wait_for(input_, POLLOUT))
      throw Error(fmt::format("device: read no question in {} seconds (--timeout)", timeout_));
    // More than a ready pipe is sure to take would block beyond the time.
    const ssize_t count =
        ::write(input_, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw Error("device: ended before it had read all questions");
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  until_ = clock_() + timeout_;
}

std::size_t QuestionDevice::read(char* to, std::size_t most) {
  for (;;) {
    if (!wait_for(output_, POLLIN))
      throw Error(fmt::format("device: no answer in {} seconds (--timeout)", timeout_));
    const ssize_t count = ::read(output_, to, most);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(fmt::format("device: {}", std::strerror(errno)));
    return static_cast<std::size_t>(count);
  }
}

}  // namespace numemu::api
