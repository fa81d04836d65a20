#include "tests/oracle/cuda/ask/supervise.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>

namespace numemu::oracle::recording {
namespace {

/// One line per task from the child: "" when it is done, else what went wrong.
void tell(int pipe, const std::string& words) {
  std::string line = words;
  for (const char control : {'\n', '\r', '\t'})  // lines of the pipe, cells of tables
    std::replace(line.begin(), line.end(), control, ' ');
  line += '\n';
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t n = write(pipe, line.data() + sent, line.size() - sent);
    if (n < 0 && errno != EINTR) _exit(1);
    if (n > 0) sent += static_cast<std::size_t>(n);
  }
}

[[noreturn]] void work(int pipe, int first, int tasks, const std::function<void(int)>& task) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a parent that is killed leaves nobody holding the GPU
  for (int i = first; i < tasks; ++i) {
    try {
      task(i);
      tell(pipe, "");
    } catch (const std::exception& error) {
      const std::string what = error.what();
      tell(pipe, what.empty() ? "failed" : what);
      _exit(1);
    }
  }
  _exit(0);
}

/// Lines of a pipe, each waited for no longer than a time.
class Lines {
 public:
  enum class Got : std::uint8_t { line, end, nothing };

  explicit Lines(int pipe) : pipe_(pipe) {}
  Got next(int patience_s, std::string& line) {
    for (;;) {
      const std::size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return Got::line;
      }
      pollfd waiting{pipe_, POLLIN, 0};
      const int ready = poll(&waiting, 1, patience_s * 1000);
      if (ready == 0) return Got::nothing;
      if (ready < 0) {
        if (errno == EINTR) continue;
        return Got::end;
      }
      char bytes[4096];
      const ssize_t n = read(pipe_, bytes, sizeof bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return Got::end;
      buffer_.append(bytes, static_cast<std::size_t>(n));
    }
  }

 private:
  int pipe_;
  std::string buffer_;
};

std::string last_words(int status) {
  if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

/// A child process and the pipe from it: nothing of them outlives this, whatever is thrown.
class Child {
 public:
  Child(pid_t id, int pipe) : id_(id), pipe_(pipe) {}
  ~Child() {
    close(pipe_);
    if (waited_) return;
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void kill_it() const { kill(id_, SIGKILL); }
  /// The status of one that ends or was killed; throws where a driver that hangs holds even that.
  int status(int patience_s) {
    waited_ = true;
    const auto step = std::chrono::milliseconds(10);
    for (std::chrono::milliseconds waited{0}; waited < std::chrono::seconds(patience_s);
         waited += step) {
      int status = 0;
      if (waitpid(id_, &status, WNOHANG) == id_) return status;
      std::this_thread::sleep_for(step);
    }
    throw std::runtime_error("process " + std::to_string(id_) + " does not end within " +
                             std::to_string(patience_s) + " s: does the GPU still answer?");
  }

 private:
  pid_t id_;
  int pipe_;
  bool waited_ = false;
};

/// One child from task `first`; returns the next task to begin with.
int run_child(int first, int tasks, int patience_s, const std::function<void(int)>& task,
              const std::function<void(const Outcome&)>& report) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error(std::string("making a pipe: ") + std::strerror(errno));
  const pid_t id = fork();
  if (id < 0) {
    close(ends[0]);
    close(ends[1]);
    throw std::runtime_error(std::string("making a process: ") + std::strerror(errno));
  }
  if (id == 0) {
    close(ends[0]);
    work(ends[1], first, tasks, task);
  }
  close(ends[1]);
  Child child(id, ends[0]);
  Lines lines(ends[0]);
  int at = first;
  std::string failure;
  for (bool running = true; running && at < tasks;) {
    std::string line;
    switch (lines.next(patience_s, line)) {
      case Lines::Got::line:
        if (line.empty())
          report({at++, true, ""});
        else
          failure = line, running = false;
        break;
      case Lines::Got::nothing:
        child.kill_it();
        failure = "no answer within " + std::to_string(patience_s) + " s";
        running = false;
        break;
      case Lines::Got::end:
        running = false;
        break;
    }
  }
  const int status = child.status(patience_s);
  if (at < tasks) report({at++, false, failure.empty() ? last_words(status) : failure});
  return at;
}

}  // namespace

void supervise(int tasks, int patience_s, const std::function<void(int)>& task,
               const std::function<void(const Outcome&)>& report) {
  for (int at = 0; at < tasks;) at = run_child(at, tasks, patience_s, task, report);
}

}  // namespace numemu::oracle::recording
