// Progress of long work: a bar on a terminal; elsewhere one line per 5 %, at most one a second and
// at least one a minute where there is news; nothing with --quiet.
#pragma once
#include <cstdint>
#include <string>

#include "api/progress.hpp"

namespace numemu::cli {

class Progress {
 public:
  /// `unit` names what is counted ("points", "steps"). Without one the total is an estimate of the
  /// work and notes are its phases: percent and time left are shown, and every phase as it begins.
  /// `start`: when the work began, in seconds(); 0: now.
  Progress(std::string title, std::int64_t total, std::string unit, bool quiet, double start = 0);
  ~Progress();
  /// `done` of the total are finished, the last one perhaps in part; `free` of them cost no time
  /// because they existed already. `note` ends the line.
  void show(double done, const std::string& note = "", double free = 0);

 private:
  std::string title_, unit_, note_;
  std::int64_t total_;
  bool quiet_, terminal_, drawn_ = false, ended_ = false;
  double start_, last_draw_ = -1;
  std::int64_t last_percent_ = 0;
};

/// Draws what a function of api tells of its work.
api::OnProgress progress_of(std::string title, bool quiet);

}  // namespace numemu::cli
