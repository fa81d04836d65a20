#include "tests/oracle/cuda/ask/ask_all.hpp"

#include <chrono>
#include <cstdio>

#include "emu/oracle/recording/whole_file.hpp"
#include "tests/oracle/cuda/ask/parts.hpp"
#include "tests/oracle/cuda/ask/supervise.hpp"
#include "tests/oracle/cuda/ask/written_file.hpp"

namespace numemu::oracle::recording {
namespace {

constexpr const char* kLayoutColumns = "instruction\tanswer";
constexpr const char* kWrongLayout = "WRONG LAYOUT: ";

/// An instruction by its number, or else a conversion by its own.
struct Task {
  std::string name;
  int instruction, conversion;
};

std::vector<Task> tasks_of(const Respondent& who, const std::string& only) {
  std::vector<Task> tasks;
  const auto add = [&tasks, &only](const std::string& text, int instruction, int conversion) {
    if (text.find(only) != std::string::npos) tasks.push_back({text, instruction, conversion});
  };
  for (const int number : who.instructions) {
    add(full_name(instructions()[static_cast<std::size_t>(number)]), number, -1);
  }
  for (const int number : who.conversions)
    add(std::string("cvt ") + conversions()[static_cast<std::size_t>(number)].name, -1, number);
  return tasks;
}

/// A task in one line.
std::string do_task(const Task& task, const Respondent& who, Machine& machine,
                    const AskOptions& options, const std::string& folder) {
  if (task.conversion >= 0) {
    const Conversion& c = conversions()[static_cast<std::size_t>(task.conversion)];
    return std::to_string(ask_conversion(who.converter, c, options, folder)) + " inputs";
  }
  const Asked asked = ask(machine, task.instruction, options, folder);
  if (!asked.layout_faults.empty())
    return kWrongLayout + asked.layout_faults.substr(0, asked.layout_faults.find('\n'));
  return std::to_string(asked.dots) + " dots, " + std::to_string(asked.records) + " records, " +
         std::to_string(asked.probes) + " probes";
}

std::string layout_table(const Task& task, const std::string& said) {
  return std::string(kLayoutColumns) + "\n" + table_line({task.name, said});
}

/// Lines of progress: what was measured, how much of it, how long it took and what is left.
class Progress {
 public:
  explicit Progress(std::size_t tasks) : tasks_(tasks) {}
  std::string line(const std::string& name, const std::string& what) {
    ++at_;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    const double left =
        spent.count() / static_cast<double>(at_) * static_cast<double>(tasks_ - at_);
    char text[64];
    std::snprintf(text, sizeof text, "  %.1f s, %.0f s left", spent.count(), left);
    return "[" + std::to_string(at_) + "/" + std::to_string(tasks_) + "] " + name + ": " + what +
           text;
  }

 private:
  std::size_t tasks_, at_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

int ask_all(const Respondent& who, const AskAllOptions& options,
            const std::function<void(const std::string&)>& say) {
  const AskOptions each{options.seed, options.threads, who.unit, who.source, options.tiles};
  const std::vector<Task> tasks = tasks_of(who, options.only);
  const int count = static_cast<int>(tasks.size());
  const TaskParts parts(options.out, who.source + ", seed " + std::to_string(options.seed) +
                                         ", program " + options.program + ", only '" +
                                         options.only + "', " + std::to_string(count) + " tasks");
  if (!who.table.empty()) write_whole_file(options.out + "/gpu.tsv", who.table);
  Progress progress(tasks.size());
  int failed = 0;
  std::unique_ptr<Machine> machine;  // lives in the child
  const auto task = [&](int t) {
    if (parts.done(t)) return;
    const std::string folder = parts.open(t);
    if (!machine) machine = who.machine();
    const Task& asked = tasks[static_cast<std::size_t>(t)];
    const std::string said = do_task(asked, who, *machine, each, folder);
    write_whole_file(folder + "/layout.tsv", layout_table(asked, said));
    parts.mark_done(t);
  };
  const auto report = [&](const Outcome& outcome) {
    const Task& asked = tasks[static_cast<std::size_t>(outcome.task)];
    std::string said = "FAILED: " + outcome.message;
    if (outcome.done)
      said = read_table(parts.open(outcome.task) + "/layout.tsv", kLayoutColumns).front()[1];
    else
      parts.mark_failed(outcome.task, layout_table(asked, said));
    if (!outcome.done || said.rfind(kWrongLayout, 0) == 0) ++failed;
    say(progress.line(asked.name, said));
  };
  supervise(count, options.patience_s, task, report);
  parts.gather(count);
  say(std::to_string(count) + " asked, " + std::to_string(failed) + " failed; answers in " +
      options.out);
  return failed;
}

}  // namespace numemu::oracle::recording
