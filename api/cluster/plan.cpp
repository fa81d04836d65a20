#include "api/cluster/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <numeric>

#include "experiments/programs/program.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/storage/output_files.hpp"

namespace numemu::api {
namespace {

using Words = std::vector<std::string>;

/// Seconds of points that a task has at least, if there are as many: sites ask for minutes
/// (docs.csc.fi, "many short jobs"); GNU parallel starts one within milliseconds.
constexpr double kLeastOfSlurm = 600, kLeastOfParallel = 60;
/// What every task spends again is at most a twentieth of its points.
constexpr double kSharedShare = 20;
/// Slurm's MaxArraySize is 1001 where a site does not change it.
constexpr std::int64_t kMostTasks = 1000;
/// A longest task may have so many times the mean before other numbers of tasks are looked at.
constexpr double kUneven = 1.25;
/// Of the memory that planning counts, what is added for what it does not.
constexpr std::int64_t kSpareMemory = 4;

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

/// Scripts have lines.
void require_line(const std::string& option, const std::string& text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      throw usage_error(option + ": expected a text without control characters for a script");
  }
}

std::string shell_word(const std::string& word) {
  constexpr const char* kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./=,:@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_line(const Words& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

/// As sbatch reads the value of an option in a script; in names of files % begins a field.
std::string sbatch_path(const std::string& folder, const std::string& file) {
  std::string quoted = "\"";
  for (const char c : folder) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
    if (c == '%') quoted += c;
  }
  return quoted + "/" + file + "\"";
}

/// The job's name: letters, digits and a few marks.
std::string job_name(const std::string& text) {
  std::string name = "numemu-";
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += plain || c == '.' || c == '_' || c == '-' ? c : '_';
  }
  return name.substr(0, 60);
}

/// Throws Error unless each is "key=value" with a key of sbatch that is not the plan's own.
void require_options(const Words& options) {
  static const Words kOwn = {"array", "output", "error", "dependency", "cpus-per-task", "wrap"};
  for (const std::string& option : options) {
    const std::size_t equal = option.find('=');
    const std::string key = option.substr(0, equal);
    if (key.empty() || equal == std::string::npos || equal + 1 == option.size() ||
        key.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") != std::string::npos || key[0] == '-')
      throw usage_error(fmt::format("--sbatch: expected key=value, as in partition=long, not '{}'",
                                    option.substr(0, 40)));
    if (std::ranges::find(kOwn, key) != kOwn.end())
      throw usage_error(
          fmt::format("--sbatch: {} is set by the plan; see --tasks and --threads", key));
    require_line("--sbatch", option);
  }
}

/// Seconds of the points of each of n shards.
std::vector<double> loads_of(const std::vector<double>& each, std::int64_t n) {
  std::vector<double> loads(static_cast<std::size_t>(n), 0);
  for (std::size_t i = 0; i < each.size(); ++i) loads[i % loads.size()] += each[i];
  return loads;
}

/// The number of shards: as long as wanted and about alike. Points that an earlier split left may
/// all stand in one shard of some numbers.
std::int64_t shards_of(const experiments::SweepEstimate& estimate, std::int64_t at_once) {
  const double points = std::accumulate(estimate.each.begin(), estimate.each.end(), 0.0);
  const double least =
      std::max(at_once > 0 ? kLeastOfParallel : kLeastOfSlurm, kSharedShare * estimate.shared);
  const auto all = static_cast<std::int64_t>(estimate.points);
  const std::int64_t most =
      std::min(kMostTasks, static_cast<std::int64_t>(estimate.points - estimate.kept));
  // Tasks that run at the same time end at the same time.
  const std::int64_t step = std::max<std::int64_t>(1, at_once);
  auto wanted = static_cast<std::int64_t>(std::min<double>(kMostTasks, points / least));
  wanted = std::clamp<std::int64_t>((wanted + step - 1) / step * step, std::min(step, most), most);
  std::int64_t best = wanted;
  double evenest = HUGE_VAL;
  for (std::int64_t n = wanted; n <= std::min(all, 2 * wanted + 16 * step); n += step) {
    const double longest = std::ranges::max(loads_of(estimate.each, n));
    const double uneven = longest * static_cast<double>(wanted) / points;
    if (uneven < evenest) {
      evenest = uneven;
      best = n;
    }
    if (uneven <= kUneven) break;
  }
  return best;
}

}  // namespace

std::int64_t ClusterPlan::limit_minutes() const {
  return static_cast<std::int64_t>(std::ceil((3 * seconds + 600) / 60));
}

ClusterPlan plan_tasks(const std::string& name, const std::string& out, Words command,
                       const ClusterRequest& asked) {
  require_options(asked.options);
  ClusterPlan plan;
  plan.name = job_name(name);
  plan.out = absolute(out);
  plan.folder = asked.folder;
  plan.command = {asked.program};
  std::ranges::move(command, std::back_inserter(plan.command));
  for (const std::string& word : {std::string("--out"), plan.out, std::string("--threads"),
                                  std::to_string(asked.threads), std::string("--quiet")})
    plan.command.push_back(word);
  if (asked.memory > 0) {
    plan.command.insert(plan.command.end(), {"--memory", std::to_string(asked.memory)});
  }
  require_line("--out", plan.out);
  require_line("the current folder", plan.folder);
  for (const std::string& word : plan.command) require_line("the command", word);
  plan.last = asked.last;
  plan.threads = asked.threads;
  plan.memory = asked.memory;
  plan.at_once = asked.at_once;
  plan.rounds = asked.rounds;
  plan.options = asked.options;
  plan.shards = asked.tasks;
  for (std::int64_t i = 0; i < plan.shards; ++i) plan.tasks.push_back(i);
  return plan;
}

ClusterPlan plan_cluster(const Sweep& sweep, const SweepRequest& request, ClusterRequest asked,
                         const Context& context, bool dry) {
  if (sweep.shard.count > 1)
    throw usage_error("--shard: expected none beside --slurm and --parallel");
  const auto points = static_cast<std::int64_t>(sweep.config.points.size());
  if (asked.tasks > points)
    throw usage_error(fmt::format("--tasks: expected at most the number of points, {}", points));
  Words command = {"sweep", absolute(sweep.path)};
  for (const std::string& metric : request.metrics)
    command.insert(command.end(), {"--metric", metric});
  if (!request.calibrate_on.empty())
    command.insert(command.end(), {"--calibrate-on", request.calibrate_on});
  if (!request.predictions) command.emplace_back("--no-predictions");
  if (request.existing == Existing::keep_old) command.emplace_back("--keep-old");
  asked.rounds = 1;
  const std::string name = std::filesystem::path(sweep.path).stem().string();
  plan_tasks(name, sweep.out, command, asked);  // what is wrong, before the work
  Sweep rest = sweep;
  if (!dry) {
    require_writable_folder(sweep.out);
    const auto [dataset, trained] = experiments::load_sweep(sweep.config, context.folders);
    experiments::open_rows(sweep.config, dataset, trained, sweep.out, {}, sweep.existing);
    if (rest.existing == Existing::fresh) rest.existing = Existing::resume;  // they are gone
  }
  const experiments::SweepEstimate estimated = estimate(rest, context);
  const std::size_t missing = estimated.points - estimated.kept;
  if (asked.memory == 0) asked.memory = estimated.memory + estimated.memory / kSpareMemory;
  if (asked.tasks == 0 && missing > 0) asked.tasks = shards_of(estimated, asked.at_once);
  ClusterPlan plan = plan_tasks(name, sweep.out, command, asked);
  plan.points = estimated.points;
  plan.missing = missing;
  const std::vector<double> loads =
      loads_of(estimated.each, std::max<std::int64_t>(1, plan.shards));
  std::erase_if(plan.tasks,
                [&](std::int64_t i) { return loads[static_cast<std::size_t>(i)] == 0; });
  if (missing > 0) plan.seconds = estimated.shared + std::ranges::max(loads);
  return plan;
}

std::string ranges_of(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[i]);
    if (end - i > 1) text += fmt::format("-{}", numbers[end - 1]);
    i = end;
  }
  return text;
}

namespace {

/// The first lines of a script; options that were asked for replace those of the plan.
std::string head_of(const ClusterPlan& plan, const std::string& name, const Words& own) {
  Words lines = {"job-name=" + name, fmt::format("cpus-per-task={}", plan.threads)};
  lines.insert(lines.end(), own.begin(), own.end());
  if (plan.memory > 0) lines.push_back(fmt::format("mem={}M", plan.limit_mebibytes()));
  if (plan.seconds > 0) {
    const std::int64_t minutes = plan.limit_minutes();
    lines.push_back(
        fmt::format("time={}-{:02}:{:02}:00", minutes / 1440, minutes / 60 % 24, minutes % 60));
  }
  const auto key = [](const std::string& line) { return line.substr(0, line.find('=')); };
  std::erase_if(lines, [&](const std::string& line) {
    return std::ranges::find(plan.options, key(line), key) != plan.options.end();
  });
  lines.insert(lines.end(), plan.options.begin(), plan.options.end());
  std::string text = "#!/bin/bash\n";
  for (const std::string& line : lines) text += "#SBATCH --" + line + "\n";
  // A task of a node that was lost begins again, where its rows end.
  return text + "#SBATCH --requeue\n#SBATCH --open-mode=append\ncd " + shell_word(plan.folder) +
         " || exit\n";
}

}  // namespace

std::string array_script(const ClusterPlan& plan) {
  const Words own = {"array=" + ranges_of(plan.tasks),
                     "output=" + sbatch_path(plan.out + "/slurm", "%A_%a.log")};
  return fmt::format("{}exec {} --shard \"$SLURM_ARRAY_TASK_ID/{}\"\n",
                     head_of(plan, plan.name, own), shell_line(plan.command), plan.shards);
}

std::string last_script(const ClusterPlan& plan) {
  Words command = plan.command;
  command.insert(command.end(), plan.last.begin(), plan.last.end());
  return fmt::format("{}exec {}\n",
                     head_of(plan, plan.name + "-last",
                             {"output=" + sbatch_path(plan.out + "/slurm", "last_%j.log")}),
                     shell_line(command));
}

std::string parallel_lines(const ClusterPlan& plan) {
  std::string text;
  for (const std::int64_t task : plan.tasks) {
    Words command = plan.command;
    command.insert(command.end(), {"--shard", fmt::format("{}/{}", task, plan.shards)});
    text +=
        fmt::format("cd {} && exec {} >>{} 2>&1\n", shell_word(plan.folder), shell_line(command),
                    shell_word(fmt::format("{}/parallel/{}.log", plan.out, task)));
  }
  return text;
}
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
