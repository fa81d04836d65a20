#include "cli/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "cli/command.hpp"
#include "cli/talk.hpp"

namespace numemu::cli {
namespace {

constexpr int kWidth = 30;         // of the bar, in characters
constexpr double kRedraw = 0.1;    // seconds between two drawings
constexpr std::int64_t kStep = 5;  // per cent between two lines
constexpr double kPause = 1;       // seconds between two of them
constexpr double kSilence = 60;    // seconds after which the next news is a line, whatever it adds
constexpr int kUsualWidth = 80;    // of a terminal that does not report its own

int terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col
                                                                           : kUsualWidth;
}

std::string clock_text(double left) {
  const long whole = static_cast<long>(left + 0.5);
  if (whole >= 3600) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

Progress::Progress(std::string title, std::int64_t total, std::string unit, bool quiet,
                   double start)
    : title_(std::move(title)),
      unit_(std::move(unit)),
      total_(std::max<std::int64_t>(1, total)),
      quiet_(quiet),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(start != 0 ? start : seconds()) {}

Progress::~Progress() {
  if (drawn_) write_talk("\n");
}

void Progress::show(double done, const std::string& note, double free) {
  if (quiet_) return;
  const double now = seconds();
  const auto total = static_cast<double>(total_);
  const bool all = done >= total;
  const auto percent = static_cast<std::int64_t>(100 * done / total);
  const bool weighted = unit_.empty(), new_phase = weighted && note != note_;
  const double pause = now - last_draw_, silence = now - std::max(last_draw_, start_);
  const bool due = terminal_ ? pause >= kRedraw || all
                             : (percent >= last_percent_ + kStep && pause >= kPause) ||
                                   silence >= kSilence || (all && !ended_);
  if (!due && !new_phase) return;
  note_ = note;
  last_draw_ = now;
  last_percent_ = percent - percent % kStep;
  ended_ = all;
  // Existing results took no time, so they must not count in the rate.
  const double worked = done - free;
  const double rate = now > start_ ? worked / (now - start_) : 0;
  const std::string left = rate > 0 ? clock_text((total - done) / rate) : "-";
  std::string tail = fmt::format("{} left  {}", left, note);
  if (!weighted) {
    const std::string speed = worked > 0 ? fmt::format("{:.{}f}", rate, rate < 10 ? 2 : 0) : "-";
    tail = fmt::format("{}/{} {}  {} {}/s  {}", static_cast<std::int64_t>(done), total_, unit_,
                       speed, unit_, tail);
  } else if (terminal_) {
    tail = fmt::format("{:3} %  {}", percent, tail);
  }
  if (terminal_) {
    const int full = std::clamp(static_cast<int>(kWidth * done / total), 0, kWidth);
    // A line that wraps could not be drawn over.
    const std::string line = fmt::format("{} [{}{}] {}", title_, std::string(full, '#'),
                                         std::string(kWidth - full, '.'), harmless(tail));
    write_talk(fmt::format("\r\033[K{:.{}}", line, terminal_width() - 1));
    drawn_ = true;
  } else {
    say("{} {:3} %  {}", title_, percent, tail);
  }
}

api::OnProgress progress_of(std::string title, bool quiet) {
  return [title = std::move(title), quiet, bar = std::shared_ptr<Progress>()](
             std::string_view unit, double done, double total) mutable {
    if (bar == nullptr)
      bar = std::make_shared<Progress>(title, static_cast<std::int64_t>(total), std::string(unit),
                                       quiet);
    if (done > 0) bar->show(done);
  };
}

}  // namespace numemu::cli
