#include "api/cluster/ranks.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <filesystem>

#include "api/cluster/ranks_plugin.h"
#include "formats/error.hpp"

namespace numemu::api {
namespace {

class PluginJob final : public Job {
 public:
  explicit PluginJob(const NumemuRanks& ranks) : ranks_(ranks) {}
  ~PluginJob() override {
    if (std::uncaught_exceptions() == 0) ranks_.leave(0);
  }
  std::int64_t count() const override { return ranks_.count; }
  std::int64_t rank() const override { return ranks_.rank; }
  void broadcast(std::int64_t owner, std::string& bytes) override {
    unsigned long long size = bytes.size();
    ranks_.broadcast(static_cast<int>(owner), &size, sizeof size);
    bytes.resize(size);
    ranks_.broadcast(static_cast<int>(owner), bytes.data(), size);
  }
  void end_all(int status) override { ranks_.leave(status); }

 private:
  NumemuRanks ranks_;
};

/// Of processes that Open MPI, or another launcher by PMI, started.
bool started_as_job() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const size = std::getenv(name);
    if (size != nullptr && std::atoi(size) > 1) return true;
  }
  return false;
}

}  // namespace

std::unique_ptr<Job> open_job() {
  if (!started_as_job()) return nullptr;
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string path = (program.parent_path() / "libnumemu_mpi.so").string();
  // Libraries of MPI load parts of their own, which look for its symbols.
  void* const plugin = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (plugin == nullptr) {
    throw Error(
        fmt::format("{}: expected the plug-in of MPI, which is built where MPI is "
                    "installed (Debian: libopenmpi-dev)",
                    path));
  }
  const auto open =
      reinterpret_cast<decltype(&numemu_open_ranks)>(::dlsym(plugin, "numemu_open_ranks"));
  NumemuRanks ranks{};
  if (open == nullptr || open(&ranks) != 0) throw Error(path + ": MPI does not start");
  return std::make_unique<PluginJob>(ranks);
}

}  // namespace numemu::api
