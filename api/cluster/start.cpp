#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "api/cluster/plan.hpp"
#include "experiments/programs/program.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/output_files.hpp"

namespace numemu::api {
namespace {

using experiments::EndedProgram, experiments::ProgramOutput, experiments::run_program;

/// Of the files that rows and trials are appended to.
std::uintmax_t stored_bytes(const std::string& folder) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".jsonl") bytes += entry.file_size();
  }
  return bytes;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

void require_started(const EndedProgram& ended, const std::string& program,
                     const std::string& package) {
  if (ended.missing()) throw file_error(fmt::format("{} is not installed ({})", program, package));
  if (ended.error != 0)
    throw file_error(fmt::format("{}: {}", program, std::strerror(ended.error)));
}

/// The number of the job that sbatch made.
std::string submit_script(const std::string& script, const std::string& after) {
  std::vector<std::string> words = {"sbatch", "--parsable"};
  if (!after.empty()) words.push_back("--dependency=afterany:" + after);
  words.push_back(script);
  const EndedProgram ended = run_program(words, ProgramOutput::kept);
  require_started(ended, "sbatch", "Debian: apt-get install slurm-client; or use --parallel");
  // "123" or "123;cluster", behind warnings maybe.
  std::string id = ended.out.substr(0, ended.out.find_last_not_of("\n") + 1);
  id = id.substr(id.rfind('\n') + 1);
  id = id.substr(0, id.find(';'));
  if (ended.status != 0 || id.empty() || id.find_first_not_of("0123456789") != std::string::npos)
    throw file_error(
        fmt::format("{}: sbatch refused it (status {}): {}; what a site asks for: --sbatch "
                    "key=value, as in partition=long or account=NAME; without Slurm: --parallel",
                    script, ended.status, first_line(ended.out)));
  return id;
}

/// Throws Error where jobs that an earlier call submitted for the folder are not through.
void require_ended(const std::string& jobs, const std::string& out) {
  if (!std::filesystem::exists(jobs)) return;
  const std::string ids = first_line(read_text(jobs));
  if (ids.empty() || ids.find_first_not_of("0123456789,") != std::string::npos) return;
  const EndedProgram ended =
      run_program({"squeue", "-h", "-o", "%A", "-j", ids}, ProgramOutput::kept);
  if (ended.error == 0 && ended.status == 0 && !ended.out.empty())
    throw file_error(fmt::format(
        "{}: its jobs {} are queued or running; wait for them, or: scancel {}", out, ids, ids));
}

}  // namespace

Submitted submit(const ClusterPlan& plan) {
  const std::string folder = plan.out + "/slurm", jobs = folder + "/jobs";
  require_ended(jobs, plan.out);
  make_folder(folder);
  write_atomically(folder + "/array.sh", {array_script(plan)});
  write_atomically(folder + "/last.sh", {last_script(plan)});
  Submitted submitted;
  std::string ids;
  const auto start = [&](const std::string& script, const std::string& after) {
    const std::string id = submit_script(folder + script, after);
    ids += (ids.empty() ? "" : ",") + id;
    write_atomically(jobs, {ids, "\n"});
    return id;
  };
  std::string after;
  for (std::int64_t round = 0; round < plan.rounds; ++round) {
    after = start("/array.sh", after);
    submitted.arrays.push_back(after);
  }
  submitted.last = start("/last.sh", after);
  return submitted;
}

std::int64_t run_parallel(const ClusterPlan& plan, bool bar) {
  const std::string package = "Debian: apt-get install parallel";
  const EndedProgram version = run_program({"parallel", "--version"}, ProgramOutput::kept);
  require_started(version, "GNU parallel", package);
  if (!version.out.starts_with("GNU parallel"))
    throw file_error("parallel: expected GNU parallel (" + package + "), found another program");
  const std::string folder = plan.out + "/parallel";
  make_folder(folder);
  write_atomically(folder + "/tasks", {parallel_lines(plan)});
  std::vector<std::string> words = {
      "parallel",   "--jobs",         std::to_string(plan.at_once), "--joblog", folder + "/joblog",
      "--arg-file", folder + "/tasks"};
  if (bar) words.emplace_back("--bar");
  for (std::int64_t round = 1;; ++round) {
    const std::uintmax_t before = stored_bytes(plan.out);
    const EndedProgram ended = run_program(words, ProgramOutput::messages);
    require_started(ended, "GNU parallel", package);
    constexpr int kMostCounted = 101;  // parallel(1): more than a hundred jobs failed
    if (ended.status > kMostCounted)
      throw file_error(
          fmt::format("GNU parallel ended with status {}; see {}", ended.status, folder));
    if (round == plan.rounds || stored_bytes(plan.out) == before) return ended.status;
  }
}

}  // namespace numemu::api
