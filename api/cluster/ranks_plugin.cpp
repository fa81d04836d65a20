// The plug-in of processes by MPI: libnumemu_mpi.so, built where MPI is installed.
#include "api/cluster/ranks_plugin.h"

#include <mpi.h>

#include <algorithm>

namespace {

void broadcast(int owner, void* data, unsigned long long bytes) {
  constexpr unsigned long long kMost = 1ull << 30;  // MPI counts in int
  auto* at = static_cast<char*>(data);
  for (; bytes > 0; bytes -= std::min(bytes, kMost)) {
    const auto part = static_cast<int>(std::min(bytes, kMost));
    MPI_Bcast(at, part, MPI_BYTE, owner, MPI_COMM_WORLD);
    at += part;
  }
}

void leave(int status) {
  if (status == 0) {
    MPI_Finalize();
  } else {
    MPI_Abort(MPI_COMM_WORLD, status);
  }
}

}  // namespace

int numemu_open_ranks(NumemuRanks* ranks) {
  int level = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS) return 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks->count);
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks->rank);
  ranks->broadcast = broadcast;
  ranks->leave = leave;
  return 0;
}
