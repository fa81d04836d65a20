// The other side of identify: a program that answers questions, or standard input and output.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace numemu::cli {

/// Lines go to the device and come from it. Every failure is an Error of one line: the device
/// ended, closed its input, or did not answer in time.
class QuestionDevice {
 public:
  /// Runs `command` by /bin/sh; its messages stay on stderr. It ends with this object.
  static std::unique_ptr<QuestionDevice> of_command(const std::string& command, double timeout);
  /// The device reads our standard output and writes our standard input.
  static std::unique_ptr<QuestionDevice> of_standard_streams(double timeout);
  ~QuestionDevice();
  QuestionDevice(const QuestionDevice&) = delete;

  void write(std::string_view text);
  /// Waits for bytes, at most `most`; 0 at the end of the answers. `timeout` seconds without any
  /// are an Error.
  std::size_t read(char* to, std::size_t most);

 private:
  QuestionDevice(int input, int output, int process, double timeout)
      : input_(input), output_(output), process_(process), timeout_(timeout) {}
  int input_, output_;  ///< of the device: we write the first and read the second
  int process_;         ///< -1: none of ours
  double timeout_;
};

}  // namespace numemu::cli
