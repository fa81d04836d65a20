// The memory limit of this process: that of the machine, its cgroup or its address space.
#pragma once
#include <cstdint>
#include <string>

namespace numemu::api {

/// Bytes of the machine's memory, or of the smallest limit that a cgroup (v1 or v2) above the
/// process or its address space has, if lower. `root` is prefixed to the files read (/proc/meminfo,
/// /proc/self/cgroup, /sys/fs/cgroup). 0 if unknown.
std::int64_t machine_memory(const std::string& root = "");

/// From now on allocations of a megabyte and more come from the system and go back to it when they
/// are freed, instead of staying as holes: a little more of the system's time for less memory.
void give_memory_back();

/// Bytes that the process has allocated and not freed.
std::int64_t held_memory();

/// The most bytes that this process has had in memory so far; 0 if unknown.
std::int64_t peak_memory();

}  // namespace numemu::api
