// Limits of memory: /proc/meminfo (proc(5)), memory.max of cgroup v2, memory.limit_in_bytes of v1.
#include "api/machine_memory.hpp"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

namespace numemu::api {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

/// The number that a text begins with; "max" (no limit in cgroup v2) is none.
std::optional<std::int64_t> number_in(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::int64_t limit_in(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? number_in(line).value_or(kNone) : kNone;
}

/// The smallest limit of a group and those above it. A container may see its own group as the top,
/// under a name that is not there.
std::int64_t limit_above(const std::string& top, std::string group, const std::string& name) {
  std::int64_t least = kNone;
  for (;;) {
    least = std::min(least, limit_in(top + group + "/" + name));
    const std::size_t slash = group.rfind('/');
    if (slash == std::string::npos) return least;
    group.resize(slash);
  }
}

std::int64_t cgroup_limit(const std::string& root) {
  std::int64_t least = kNone;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:memory:/a/b", in v2 "0::/a/b"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    const std::string top = root + "/sys/fs/cgroup";
    if (controllers == ",,") {
      least = std::min(least, limit_above(top, group, "memory.max"));
      least = std::min(least, limit_above(top + "/unified", group, "memory.max"));
    } else if (controllers.find(",memory,") != std::string::npos) {
      least = std::min(least, limit_above(top + "/memory", group, "memory.limit_in_bytes"));
    }
  }
  return least;
}

std::int64_t physical_memory(const std::string& root) {
  constexpr std::string_view kTotal = "MemTotal:";
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kTotal)) continue;
    const std::optional<std::int64_t> kibibytes = number_in(line.substr(kTotal.size()));
    if (kibibytes && *kibibytes < kNone >> 10) return *kibibytes << 10;
  }
  return kNone;
}

std::int64_t address_space() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur > rlim_t{kNone}) return kNone;
  return static_cast<std::int64_t>(limit.rlim_cur);
}

}  // namespace

std::int64_t machine_memory(const std::string& root) {
  const std::int64_t least = std::min({physical_memory(root), cgroup_limit(root), address_space()});
  return least == kNone ? 0 : least;
}

void give_memory_back() { mallopt(M_MMAP_THRESHOLD, 1 << 20); }

std::int64_t held_memory() {
  const struct mallinfo2 counts = mallinfo2();
  return static_cast<std::int64_t>(counts.uordblks + counts.hblkhd);
}

std::int64_t peak_memory() {
  // Not getrusage(): its figure includes what the parent had when it started this process.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    constexpr std::string_view kPeak = "VmHWM:";
    if (line.starts_with(kPeak))
      return number_in(std::string_view(line).substr(kPeak.size())).value_or(0) * 1024;
  }
  return 0;
}

}  // namespace numemu::api
