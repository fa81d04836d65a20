// The answers of a run, instruction by instruction in folders of their own, and put together at the
// end: a run that is killed resumes where it was.
#pragma once
#include <string>
#include <vector>

namespace numemu::oracle::recording {

/// FOLDER/parts/000, 001...: each holds what one task wrote, complete once mark_done() has been
/// called.
class TaskParts {
 public:
  /// identity: the machine, the toolkit and the seed in a line. Throws std::runtime_error when the
  /// folder holds parts of another identity or a finished run, or when a run is at work there.
  TaskParts(std::string folder, const std::string& identity);
  ~TaskParts();
  TaskParts(const TaskParts&) = delete;
  TaskParts& operator=(const TaskParts&) = delete;

  /// Where a task writes. Emptied when what is there was not completed.
  std::string open(int task) const;
  void mark_done(int task) const;
  bool done(int task) const;
  /// Nothing stays of what a task wrote but `layout`, its layout.tsv, which says what failed. A run
  /// that goes on begins it again.
  void mark_failed(int task, const std::string& layout) const;

  /// Puts the tables of the parts that are done together in FOLDER (index.tsv, probes.tsv,
  /// steps.tsv, hashes.*, conversions.tsv; layout.tsv also of those that failed), moves their
  /// records and faults, and removes the parts.
  void gather(int tasks) const;

 private:
  std::string part(int task) const;
  bool failed(int task) const;

  std::string folder_;
  int lock_ = -1;  ///< a file that is locked while a process works on the parts
};

}  // namespace numemu::oracle::recording
