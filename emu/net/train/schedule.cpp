#include "emu/net/train/schedule.hpp"

#include "emu/net/math.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {
namespace {

double constant(const Progress&) { return 1; }

// From 1 to 0 in equal steps.
double linear(const Progress& p) {
  return 1 - static_cast<double>(p.step) / static_cast<double>(p.steps);
}

// From 1 to 0 along half a cosine over all steps (Loshchilov and Hutter 2017, without restarts).
double cosine(const Progress& p) {
  return 0.5 * (1 + cos_pi(static_cast<double>(p.step) / static_cast<double>(p.steps)));
}

// From 1 to 10^-4 by equal ratios.
double exponential(const Progress& p) {
  constexpr double kLogarithm = -9.210340371976184;  // ln 10^-4
  return double{exp(
      static_cast<float>(kLogarithm * static_cast<double>(p.step) / static_cast<double>(p.steps)))};
}

// 1, then 0.1 from half of the epochs on, then 0.01 from three quarters on.
double step(const Progress& p) {
  if (4 * p.epoch >= 3 * p.epochs) return 0.01;
  return 2 * p.epoch >= p.epochs ? 0.1 : 1;
}

struct ScheduleRow {
  std::string_view name;
  Schedule schedule;
};
constexpr ScheduleRow kSchedules[] = {{"cosine", cosine},
                                      {"step", step},
                                      {"linear", linear},
                                      {"exponential", exponential},
                                      {"constant", constant}};

}  // namespace

Schedule find_schedule(std::string_view name) {
  return find_named("schedule", name, kSchedules, &ScheduleRow::name).schedule;
}

double rate_factor(Schedule schedule, const Progress& progress, std::int64_t warmup) {
  if (progress.step < warmup)
    return static_cast<double>(progress.step + 1) / static_cast<double>(warmup);
  Progress rest = progress;
  rest.step -= warmup;
  rest.steps -= warmup;  // at least 1: this step is one of them
  return schedule(rest);
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const ScheduleRow& row : kSchedules) names.emplace_back(row.name);
  return names;
}

}  // namespace numemu::net
