// The rule of an unknown unit, and the device that answers questions about it.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "api/oracle.hpp"
#include "api/oracle/records.hpp"
#include "emu/oracle/identify/protocol.hpp"
#include "formats/error.hpp"

namespace numemu::api {
namespace {

using oracle::Dot;
using oracle::Ports;

constexpr int kInterrupts[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw file_error(fmt::format("--device: cannot open a pipe: {}", std::strerror(errno)));
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

/// A format of C or D; nullptr: two's complement of as many bits, "int32".
const Format* accumulator(const std::string& name, int& bits) {
  constexpr int kMostBits = 32;  // of a unit's register
  const std::string_view digits = name.starts_with("int") ? std::string_view(name).substr(3) : "";
  int wanted = 0;
  const char* const end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, wanted);
  if (digits.empty() || read.ptr != end) return &find_format(name);
  if (read.ec != std::errc() || wanted < 2 || wanted > kMostBits)
    throw Error(fmt::format("{}: expected int2 to int{} for two's complement", name, kMostBits));
  bits = wanted;
  return nullptr;
}

unit::Sparsity parse_sparsity(const std::string& text) {
  unit::Sparsity s;
  const char* end = text.data() + text.size();
  const auto kept = std::from_chars(text.data(), end, s.kept);
  const bool colon = kept.ec == std::errc{} && kept.ptr != end && *kept.ptr == ':';
  const auto group = std::from_chars(colon ? kept.ptr + 1 : end, end, s.group);
  if (group.ec != std::errc{} || group.ptr != end || s.kept < 1 || s.kept > s.group || s.group > 16)
    throw usage_error("--sparsity: expected N:M with 1 <= N <= M <= 16, as in 2:4");
  return s;
}

Ports ports_like(const unit::Unit& unit, std::int64_t k) {
  if (unit.description() == nullptr)
    throw usage_error("--like: unit " + unit.row().name + " has no description");
  return oracle::ports_of(*unit.description(),
                          static_cast<int>(k != 0 ? k : oracle::usual_depth(*unit.description())));
}

/// From what is told, which goes before what the first line of the file says.
UnknownUnit unknown_unit_of(const PortsTold& o, const std::string& file,
                            const std::string& header) {
  Ports ports;
  UnitPtr own;
  if (!o.like.empty()) {
    own = open_unit(o.like);
    ports = ports_like(*own, o.k);
    if (!is_unit_file(o.like)) own = nullptr;
  } else if (!header.empty()) {
    own = unit_described(file, header);
    const oracle::Subject subject = oracle::parse_header(header, own.get());
    if (subject.unit == nullptr) throw Error(file + ": line 1: expected records of a unit");
    if (subject.codes)
      throw Error(file + ": line 1: expected results of the unit itself, found codes of its sums");
    if (subject.rounding.stochastic())
      throw Error(fmt::format("{}: line 1: expected a unit without random numbers, found {}", file,
                              subject.unit->row().name));
    ports = oracle::ports_of(*subject.unit->description(), static_cast<int>(subject.k));
    ports.a = subject.a;
    ports.b = subject.b;
  } else if (o.a.empty() || o.d.empty() || o.k == 0) {
    throw usage_error("expected --format-a, --format-d and --k, or --like U: what the unit takes");
  }
  if (!o.a.empty()) ports.a = ports.b = &find_format(o.a);
  if (!o.b.empty()) ports.b = &find_format(o.b);
  if (!o.d.empty()) ports.c = ports.d = accumulator(o.d, ports.bits);
  if (!o.c.empty()) ports.c = accumulator(o.c, ports.bits);
  if (o.k != 0) ports.k = static_cast<int>(o.k);
  if (!o.sparsity.empty()) ports.sparsity = parse_sparsity(o.sparsity);
  if (o.scale.empty() != (o.block == 0))
    throw usage_error("--scale: expected together with --block, elements per scale");
  if (!o.scale.empty()) {
    ports.scale = &find_format(o.scale);
    ports.block = static_cast<int>(o.block);
  }
  oracle::check_ports(ports);
  UnknownUnit unknown{ports};
  if (own != nullptr) {
    unknown.units.push_back(*own->description());
    unknown.units.back().a = ports.a;
    unknown.units.back().b = ports.b;
  }
  return unknown;
}

/// Reads and asks by text.
class Conversation {
 public:
  Conversation(const Ports& ports, QuestionDevice& device)
      : ports_(ports), device_(device), layout_(oracle::answer_layout(ports)) {
    device_.write(oracle::questions_header(ports));
  }

  std::uint64_t ask(const Dot& dot) {
    device_.write(oracle::question_text(ports_, dot));
    // The reader begins with a line: there is none before the first question.
    if (!reader_)
      reader_.emplace("device", [this](char* to, std::size_t most) { return read(to, most); });
    if (!reader_->read(layout_, 1, answer_))
      throw Error(fmt::format("device: no answer to question {}", asked_ + 1));
    if (answer_.has_unknown(layout_, 0, 0))
      throw Error(
          fmt::format("device: answer {}: expected hexadecimal digits, found X or Z", asked_ + 1));
    ++asked_;
    unanswered_ = 0;
    return answer_.code(0, 0);
  }
  std::size_t asked() const { return asked_; }

 private:
  /// Comments may come, too, but not without end.
  std::size_t read(char* to, std::size_t most) {
    constexpr std::size_t kMostUnanswered = 1 << 20;
    const std::size_t count = device_.read(to, most);
    unanswered_ += count;
    if (unanswered_ > kMostUnanswered)
      throw Error(fmt::format("device: expected one line for question {}, found over 2^20 bytes",
                              asked_ + 1));
    return count;
  }

  const Ports& ports_;
  QuestionDevice& device_;
  oracle::Layout layout_;
  oracle::Records answer_;
  std::optional<oracle::TextReader> reader_;
  std::size_t asked_ = 0, unanswered_ = 0;
};

/// All records of the file without unknown digits, and their lines.
std::vector<oracle::Answered> read_records(RecordFile& reader, const Ports& ports,
                                           std::size_t& skipped, std::vector<std::int64_t>& lines) {
  constexpr std::int64_t kPiece = 1024;
  constexpr std::size_t kMost = 1 << 20;
  const oracle::Layout layout = oracle::record_layout(ports);
  std::vector<oracle::Answered> all;
  for (oracle::Records records; reader.read(layout, kPiece, records);) {
    for (std::int64_t i = 0; i < records.size; ++i) {
      bool unknown = false;
      for (std::size_t f = 0; f < layout.size(); ++f)
        unknown = unknown || records.has_unknown(layout, static_cast<int>(f), i);
      if (unknown || all.size() == kMost) {
        ++skipped;
        continue;
      }
      std::string name(records.class_name(i));
      all.push_back({{name.empty() ? "record" : std::move(name), oracle::dot_of(ports, records, i)},
                     records.code(oracle::find_field(layout, "d"), i)});
      lines.push_back(records.line[static_cast<std::size_t>(i)]);
    }
  }
  return all;
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
  if (process < 0)
    throw file_error(fmt::format("--device: cannot start: {}", std::strerror(errno)));
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
    if (count < 0) throw file_error(fmt::format("device: {}", std::strerror(errno)));
    return static_cast<std::size_t>(count);
  }
}

UnknownUnit unknown_unit(const PortsTold& told) { return unknown_unit_of(told, "", ""); }

unit::UnitDescription own_description(const Identified& identified) {
  unit::UnitDescription u = identified.finding.description;
  u.name = "identified";
  u.a = identified.ports.a;
  u.b = identified.ports.b;
  return u;
}

Identified identify(const UnknownUnit& unknown, const oracle::Device& device, bool order,
                    const oracle::IdentifyOptions& options) {
  Identified identified;
  identified.ports = unknown.ports;
  const oracle::Device ask = [&](const Dot& dot) {
    const std::uint64_t code = device(dot);
    ++identified.asked;
    return code;
  };
  oracle::IdentifyOptions with_own = options;
  with_own.units = unknown.units;
  oracle::FoundRule& finding = identified.finding;
  finding = oracle::identify(unknown.ports, ask, with_own);
  constexpr int kMostForTree = 256;
  const bool no_rule =
      !finding.fits && !finding.found_but() && finding.reproducible && !finding.too_late;
  identified.order_asked = (order || no_rule) && unknown.ports.kept() <= kMostForTree;
  if (identified.order_asked) identified.tree = oracle::read_summation_tree(unknown.ports, ask);
  return identified;
}

Identified identify(const UnknownUnit& unknown, QuestionDevice& device, bool order,
                    const oracle::IdentifyOptions& options) {
  Conversation conversation(unknown.ports, device);
  return identify(
      unknown, [&](const Dot& dot) { return conversation.ask(dot); }, order, options);
}

Identified identify_records(const std::string& in, const PortsTold& told,
                            oracle::IdentifyOptions options) {
  RecordFile reader(in);
  UnknownUnit unknown = unknown_unit_of(told, in, reader.header());
  Identified identified;
  identified.ports = unknown.ports;
  identified.place = reader.place();
  const auto records = read_records(reader, unknown.ports, identified.ignored, identified.places);
  if (records.empty()) throw Error(in + ": expected at least one record");
  options.units = std::move(unknown.units);
  identified.finding = oracle::identify(unknown.ports, records, options);
  identified.asked = records.size();
  return identified;
}

bool identify_folder(
    const std::string& folder, const std::string& instr, const oracle::IdentifyOptions& options,
    const std::function<void(const oracle::RecordedUnit&, const oracle::FoundRule&)>& found) {
  const oracle::RecordFolder records = oracle::read_record_folder(folder, instr);
  const std::vector<oracle::RecordedUnit> units = oracle::recorded_units(records);
  if (units.empty()) throw Error(folder + ": expected records of a matrix instruction, found none");
  bool fits = true;
  for (const oracle::RecordedUnit& one : units) {
    const oracle::FoundRule finding = oracle::identify(one.ports, one.answers, options);
    fits = fits && finding.fits && finding.decided;
    found(one, finding);
  }
  return fits;
}

}  // namespace numemu::api
