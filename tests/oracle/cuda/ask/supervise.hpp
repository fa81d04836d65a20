// Runs tasks in a child process, so that a kernel that crashes or hangs costs one answer and not
// the run.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace numemu::oracle::recording {

struct Outcome {
  int task;
  bool done;            ///< false: see message
  std::string message;  ///< what was thrown, "killed by signal 11", "no answer within 60 s"
};

/// Calls task(i) for i in [0, tasks) in order, in a child process. When a task throws, kills the
/// child or takes longer than `patience_s` seconds, it has failed and a new child continues with
/// the next, since an error of the GPU makes its process unusable. `report` runs in the parent,
/// once per task, in order. What tasks do to memory is lost with the child: they write files.
/// Throws std::runtime_error when no child can be made, or one does not end though it was killed.
void supervise(int tasks, int patience_s, const std::function<void(int)>& task,
               const std::function<void(const Outcome&)>& report);

}  // namespace numemu::oracle::recording
