#include "cli/groups.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace numemu::cli {

const CommandRow* command_of(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '-') continue;
    for (const CommandRow& row : kCommands) {
      if (std::strcmp(row.name, argv[i]) == 0) return &row;
    }
    return nullptr;
  }
  return nullptr;
}

const char* become(const char* program, char** argv) {
  char path[PATH_MAX + 64];
  const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
  if (length < 0) return std::strerror(errno);
  path[length] = '\0';
  std::strcpy(std::strrchr(path, '/') + 1, program);
  // Threads of OpenMP that wait spin for microseconds, not for ever: beside other work a spinning
  // one takes the core that it waits for (measured: an epoch of LeNet 30 s instead of 4).
  setenv("GOMP_SPINCOUNT", "2000", 0);
  execv(path, argv);
  if (errno != ENOENT) return std::strerror(errno);
  return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0
             ? "what it needs to run is missing: its interpreter, its loader or the file it links "
               "to"
             : nullptr;
}

}  // namespace numemu::cli
