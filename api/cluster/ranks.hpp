// The processes of a job that mpirun started, as a training shares its workers among them.
#pragma once
#include <memory>

#include "emu/net/train/ranks.hpp"

namespace numemu::api {

/// A job of several processes.
class Job : public net::Ranks {
 public:
  /// Ends all processes with that status, whatever they do.
  virtual void end_all(int status) = 0;
};

/// The job that this process belongs to; null where it runs alone. All ranks leave it together when
/// theirs is destroyed. Throws Error where the plug-in (libnumemu_mpi.so, beside the program) is
/// missing or MPI does not start.
std::unique_ptr<Job> open_job();

}  // namespace numemu::api
