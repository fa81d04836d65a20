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

void Progress::show(double done, const std::string& note, double free) {
  if (quiet_) return;
  const double now = seconds();
  const auto total = static_cast<double>(total_);
  const bool all = done >= total;
  const auto percent = static_cast<std::int64_t>(100 * done / total);
  const bool due = terminal_ ? now - last_draw_ >= kRedraw || all
                             : percent >= last_percent_ + kStep || (all && !ended_);
  if (!due) return;
  last_draw_ = now;
  last_percent_ = percent - percent % kStep;
  ended_ = all;
  // Existing results took no time, so they must not count in the rate.
  const double worked = done - free;
  const double rate = now > start_ ? worked / (now - start_) : 0;
  const std::string speed = worked > 0 ? fmt::format("{:.{}f}", rate, rate < 10 ? 2 : 0) : "-";
  const std::string left = rate > 0 ? clock_text((total - done) / rate) : "-";
  const std::string tail =
      fmt::format("{}/{} {}  {} {}/s  {} left  {}", static_cast<std::int64_t>(done), total_, unit_,
                  speed, unit_, left, note);
  if (terminal_) {
    const int full = std::clamp(static_cast<int>(kWidth * done / total), 0, kWidth);
    write_talk(fmt::format("\r\033[K{} [{}{}] {}", title_, std::string(full, '#'),
                           std::string(kWidth - full, '.'), harmless(tail)));
    drawn_ = true;
  } else {
    say("{} {:3} %  {}", title_, percent, tail);
  }
}

}  // namespace numemu::cli
