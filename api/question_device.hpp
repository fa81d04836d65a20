// The other side of identify: a program that answers questions, or standard input and output.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace numemu::api {

/// Seconds of a steady clock.
using Clock = std::function<double()>;

/// Lines go to the device and come from it. Every failure is an Error of one line: the device
/// ended, closed its input, or did not answer in time.
class QuestionDevice {
 public:
  /// Runs `command` by /bin/sh in a process group of its own; its messages stay on stderr. The
  /// whole group ends with this object, and with this process, however that ends.
  static std::unique_ptr<QuestionDevice> of_command(const std::string& command, double timeout,
                                                    Clock);
  /// The device reads our standard output and writes our standard input.
  static std::unique_ptr<QuestionDevice> of_standard_streams(double timeout, Clock);
  ~QuestionDevice();
  QuestionDevice(const QuestionDevice&) = delete;

  /// Writes a whole question; its answer has `timeout` seconds from then on.
  void write(std::string_view text);
  /// Waits for bytes, at most `most`; 0 at the end of the answers. All that follows a question
  /// comes within its time, else an Error is thrown.
  std::size_t read(char* to, std::size_t most);

 private:
  QuestionDevice(int input, int output, int life, int guard, double timeout, Clock clock)
      : clock_(std::move(clock)),
        input_(input),
        output_(output),
        life_(life),
        guard_(guard),
        timeout_(timeout) {}
  /// Waits until the file is ready; false where the time is over.
  bool wait_for(int file, short event) const;

  Clock clock_;
  int input_, output_;  ///< of the device: we write the first and read the second
  int life_;            ///< the guard ends the device once no process holds this
  int guard_;           ///< process that started the device; -1: the device is none of ours
  double timeout_, until_ = 0;
};

}  // namespace numemu::api
