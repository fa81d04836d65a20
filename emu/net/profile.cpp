// A stack of sections per thread, merged as they end.
#include "emu/net/profile.hpp"

#include <algorithm>
#include <array>

#include "emu/net/run_context.hpp"

namespace numemu::net {
namespace {

struct Open {
  SectionKind kind;
  std::string_view layer, what;
  double macs, begin, inside = 0;  // inside: time of the sections within
};

thread_local std::vector<Open> open_sections;

}  // namespace

std::string_view to_string(SectionKind kind) {
  constexpr std::array<std::string_view, 7> kNames{"forward", "backward", "quantize", "gemm",
                                                   "data",    "update",   "mask"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<ProfileRow> Profile::rows() const {
  const std::lock_guard lock(mutex_);
  std::vector<ProfileRow> rows;
  for (const auto& [key, total] : totals_) {
    rows.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), total.calls,
                    total.seconds, total.macs});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
  return rows;
}

Section::Section(SectionKind kind, std::string_view layer, std::string_view what, double macs) {
  std::optional<Profile>& profile = RunScope::current().profile;
  profile_ = profile ? &*profile : nullptr;
  if (profile_ != nullptr) open_sections.push_back({kind, layer, what, macs, profile_->clock_()});
}

Section::~Section() {
  if (profile_ == nullptr) return;
  const Open section = open_sections.back();
  open_sections.pop_back();
  const double whole = profile_->clock_() - section.begin;
  if (!open_sections.empty()) open_sections.back().inside += whole;
  // One lock a section: a few thousand a second, each worth tens of microseconds of work or more.
  const std::lock_guard lock(profile_->mutex_);
  Profile::Total& total =
      profile_->totals_[{std::string(section.layer), std::string(section.what), section.kind}];
  ++total.calls;
  total.seconds += whole - section.inside;
  total.macs += section.macs;
}

}  // namespace numemu::net
