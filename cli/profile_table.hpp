// --profile: the time of a run per operator and per GEMM.
#pragma once
#include <optional>

#include "cli/options.hpp"
#include "emu/net/profile.hpp"

namespace numemu::cli {

/// Adds --profile.
void add_profile(Command&, bool& profile);

/// If `profile`, times the command from construction to destruction and prints the table on stderr.
class ProfiledRun {
 public:
  explicit ProfiledRun(bool profile);
  ~ProfiledRun();
  ProfiledRun(const ProfiledRun&) = delete;
  ProfiledRun& operator=(const ProfiledRun&) = delete;

 private:
  bool profile_;
  double start_;
  std::optional<net::Section> rest_;  ///< what no other section of this thread covers
};

}  // namespace numemu::cli
