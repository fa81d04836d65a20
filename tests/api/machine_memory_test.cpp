// The machine's memory as faked files tell it: the least of MemTotal and the limits of cgroups.
#include "api/machine_memory.hpp"

#include <filesystem>

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace machine_memory_test {

namespace {

using numemu::api::machine_memory;

struct Machine {
  numemu::test::TemporaryFolder folder;
  std::string root = folder / "";

  void file(const std::string& path, const std::string& text) const {
    const std::string whole = root + path;
    std::filesystem::create_directories(std::filesystem::path(whole).parent_path());
    numemu::test::write_file(whole, text);
  }
};

constexpr std::int64_t kMiB = 1 << 20;

}  // namespace

TEST_CASE("without a limit the machine's memory counts, without a machine nothing", "[fast]") {
  const Machine machine;
  CHECK(machine_memory(machine.root) == 0);
  machine.file("proc/meminfo", "MemTotal:       2097152 kB\nMemFree: 1 kB\n");
  CHECK(machine_memory(machine.root) == 2048 * kMiB);
  machine.file("proc/self/cgroup", "0::/\n");
  machine.file("sys/fs/cgroup/memory.max", "max\n");
  CHECK(machine_memory(machine.root) == 2048 * kMiB);
}

TEST_CASE("cgroup v2: the least limit of the group and those above it", "[fast]") {
  const Machine machine;
  machine.file("proc/meminfo", "MemTotal: 2097152 kB\n");
  machine.file("proc/self/cgroup", "0::/user/job\n");
  machine.file("sys/fs/cgroup/user/job/memory.max", "max\n");
  CHECK(machine_memory(machine.root) == 2048 * kMiB);
  machine.file("sys/fs/cgroup/user/memory.max", std::to_string(300 * kMiB) + "\n");
  CHECK(machine_memory(machine.root) == 300 * kMiB);
  machine.file("sys/fs/cgroup/user/job/memory.max", std::to_string(200 * kMiB) + "\n");
  CHECK(machine_memory(machine.root) == 200 * kMiB);
}

TEST_CASE("cgroup v1: the controller of memory, also where a container hides the group", "[fast]") {
  const Machine machine;
  machine.file("proc/meminfo", "MemTotal: 2097152 kB\n");
  machine.file("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:hugetlb,memory:/docker/abc\n0::/\n");
  machine.file("sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(100 * kMiB) + "\n");
  CHECK(machine_memory(machine.root) == 100 * kMiB);
  machine.file("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(machine_memory(machine.root) == 100 * kMiB);
  machine.file("proc/self/cgroup", "5:cpu,cpuacct:/x\n");
  CHECK(machine_memory(machine.root) == 2048 * kMiB);
}

}  // namespace machine_memory_test
