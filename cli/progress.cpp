#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/command.hpp"
#include "cli/talk.hpp"

namespace numemu::cli {
namespace {

constexpr int kWidth = 30;         // of the bar, in characters
constexpr double kRedraw = 0.1;    // seconds between two drawings
constexpr std::int64_t kStep = 5;  // per cent between two lines

std::string clock_text(double left) {
  const long whole = static_cast<long>(left + 0.5);
  if (whole >= 3600) return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

Progress::Progress(std::string title, std::int64_t total, std::string unit, bool quiet)
    : title_(std::move(title)),
      unit_(std::move(unit)),
      total_(std::max<std::int64_t>(1, total)),
      quiet_(quiet),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(seconds()) {}

Progress::~Progress() {
  if (drawn_) write_talk("\n");
}

void Progress::show(std::int64_t done, const std::string& note, std::int64_t free) {
  if (quiet_) return;
  const double now = seconds();
  const std::int64_t percent = 100 * done / total_;
  const bool due = terminal_ ? now - last_draw_ >= kRedraw || done == total_
                             : percent >= last_percent_ + kStep || done == total_;
  if (!due) return;
  last_draw_ = now;
  last_percent_ = percent - percent % kStep;
  // Existing results took no time, so they must not count in the rate.
  const std::int64_t worked = done - free;
  const double rate = now > start_ ? static_cast<double>(worked) / (now - start_) : 0;
  const std::string speed = worked > 0 ? fmt::format("{:.{}f}", rate, rate < 10 ? 2 : 0) : "-";
  const std::string left = rate > 0 ? clock_text(static_cast<double>(total_ - done) / rate) : "-";
  const std::string tail =
      fmt::format("{}/{} {}  {} {}/s  {} left  {}", done, total_, unit_, speed, unit_, left, note);
  if (terminal_) {
    const int full = static_cast<int>(kWidth * done / total_);
    write_talk(fmt::format("\r\033[K{} [{}{}] {}", title_, std::string(full, '#'),
                           std::string(kWidth - full, '.'), harmless(tail)));
    drawn_ = true;
  } else {
    say("{} {:3} %  {}", title_, percent, tail);
  }
}

}  // namespace numemu::cli
