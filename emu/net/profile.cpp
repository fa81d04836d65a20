// A stack of sections per thread, merged at the end.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/net/profile.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <tuple>

namespace numemu::net {
namespace {

using Key = std::tuple<std::string, std::string, SectionKind>;

struct Total {
  std::int64_t calls = 0;
  double seconds = 0, macs = 0;
};

struct Open {
  SectionKind kind;
  std::string_view layer, what;
  double macs, begin, inside = 0;  // inside: time of the sections within
};

std::atomic<double (*)()> clock_now = nullptr;
std::mutex mutex;
std::map<Key, Total> totals;

thread_local std::vector<Open> open_sections;

}  // namespace

std::string_view to_string(SectionKind kind) {
  constexpr std::array<std::string_view, 7> kNames{"forward", "backward", "quantize", "gemm",
                                                   "data",    "update",   "mask"};
  return kNames[static_cast<std::size_t>(kind)];
}

void start_profile(double (*clock)()) {
  const std::lock_guard lock(mutex);
  totals.clear();
  clock_now = clock;
}

std::vector<ProfileRow> end_profile() {
  clock_now = nullptr;
  const std::lock_guard lock(mutex);
  std::vector<ProfileRow> rows;
  for (const auto& [key, total] : totals) {
    rows.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), total.calls,
                    total.seconds, total.macs});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
  totals.clear();
  return rows;
}

Section::Section(SectionKind kind, std::string_view layer, std::string_view what, double macs) {
  double (*const now)() = clock_now.load(std::memory_order_relaxed);
  timed_ = now != nullptr;
  if (timed_) open_sections.push_back({kind, layer, what, macs, now()});
}

Section::~Section() {
  if (!timed_) return;
  const Open section = open_sections.back();
  open_sections.pop_back();
  double (*const now)() = clock_now.load(std::memory_order_relaxed);
  if (now == nullptr) return;
  const double whole = now() - section.begin;
  if (!open_sections.empty()) open_sections.back().inside += whole;
  // One lock a section: a few thousand a second, each worth tens of microseconds of work or more.
  const std::lock_guard lock(mutex);
  Total& total = totals[{std::string(section.layer), std::string(section.what), section.kind}];
  ++total.calls;
  total.seconds += whole - section.inside;
  total.macs += section.macs;
}

}  // namespace numemu::net
