// Paths are compared as the file system sees them.
// Cold: a negligible share of any run (docs/build.md).
#include "formats/storage/distinct_paths.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "formats/error.hpp"
#include "formats/storage/sidecar.hpp"

namespace numemu {
namespace {

bool is_file(const NamedPath& file) { return !file.path.empty() && file.path != "-"; }

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error) && !error) return true;
  // What is not there yet has a name only.
  const auto first = std::filesystem::weakly_canonical(std::filesystem::absolute(a, error), error);
  if (error) return a == b;
  const auto second = std::filesystem::weakly_canonical(std::filesystem::absolute(b, error), error);
  return error ? a == b : first == second;
}

void require_two_files(const NamedPath& a, const NamedPath& b) {
  if (!is_file(a) || !is_file(b)) return;
  const bool may_be_one = a.option == "--out" && b.replaceable;
  if (!may_be_one && same_file(a.path, b.path)) {
    throw Error(
        fmt::format("{} and {}: expected two files, found {} twice", a.option, b.option, b.path));
  }
  for (const auto& [file, of] : {std::pair(&a, &b), {&b, &a}}) {
    if (!of->sidecar || !same_file(file->path, sidecar_path(of->path))) continue;
    throw Error(fmt::format("{} and {}: expected two files, found {}, the sidecar of {}",
                            file->option, of->option, file->path, of->path));
  }
}

}  // namespace

void require_distinct_paths(const std::vector<NamedPath>& outputs,
                            const std::vector<NamedPath>& inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (std::size_t j = i + 1; j < outputs.size(); ++j) require_two_files(outputs[i], outputs[j]);
    for (const NamedPath& input : inputs) require_two_files(outputs[i], input);
  }
}

}  // namespace numemu
