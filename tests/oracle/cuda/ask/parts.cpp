#include "tests/oracle/cuda/ask/parts.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "emu/oracle/recording/hashes.hpp"
#include "emu/oracle/recording/whole_file.hpp"
#include "tests/oracle/cuda/ask/large_run.hpp"
#include "tests/oracle/cuda/ask/written_file.hpp"

namespace numemu::oracle::recording {
namespace {

namespace fs = std::filesystem;

/// Tables whose rows are those of all parts, below one header.
constexpr const char* kTables[] = {"index.tsv", "probes.tsv", "steps.tsv", "conversions.tsv",
                                   "layout.tsv"};
/// Folders whose files are those of all parts.
constexpr const char* kFolders[] = {"records", "probes", "conversions", "faults"};

void append_rows(const std::string& file, std::string& all) {
  if (!fs::exists(file)) return;
  const std::string text = read_whole_file(file);
  const std::size_t rows = text.find('\n') + 1;
  all += all.empty() ? text : text.substr(rows);
}

void move_files(const std::string& from, const std::string& to) {
  if (!fs::exists(from)) return;
  fs::create_directories(to);
  for (const fs::directory_entry& file : fs::directory_iterator(from))
    fs::copy_file(file.path(), to / file.path().filename(), fs::copy_options::overwrite_existing);
}

/// Children inherit the lock: one that outlives its parent keeps it. File systems without locks
/// go without.
int lock_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) throw std::runtime_error(path + ": cannot write: " + std::strerror(errno));
  if (flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return file;
  close(file);
  throw std::runtime_error(path + ": another run is at work in this folder");
}

}  // namespace

TaskParts::TaskParts(std::string folder, const std::string& identity) : folder_(std::move(folder)) {
  const std::string parts = folder_ + "/parts", path = parts + "/identity";
  if (fs::exists(path)) {
    const std::string there = read_whole_file(path);
    if (there != identity + "\n")
      throw std::runtime_error(parts + " holds answers of " + there.substr(0, there.find('\n')) +
                               "; expected " + identity + ", or an empty folder");
  }
  if (!fs::exists(parts) &&
      (fs::exists(folder_ + "/index.tsv") || fs::exists(folder_ + "/layout.tsv")))
    throw std::runtime_error(folder_ +
                             ": holds the answers of a finished run; expected an empty folder");
  std::error_code error;
  fs::create_directories(parts, error);
  if (error) throw std::runtime_error(parts + ": cannot make this folder: " + error.message());
  lock_ = lock_file(parts + "/lock");
  write_whole_file(path, identity + "\n");
}

TaskParts::~TaskParts() {
  if (lock_ >= 0) close(lock_);
}

std::string TaskParts::part(int task) const {
  std::string digits = std::to_string(task);
  digits.insert(0, digits.size() < 3 ? 3 - digits.size() : 0, '0');
  return folder_ + "/parts/" + digits;
}

std::string TaskParts::open(int task) const {
  if (!done(task)) fs::remove_all(part(task));
  return part(task);
}

void TaskParts::mark_done(int task) const { write_whole_file(part(task) + "/done", ""); }

bool TaskParts::done(int task) const { return fs::exists(part(task) + "/done"); }

void TaskParts::mark_failed(int task, const std::string& layout) const {
  const std::string emptied = open(task);
  write_whole_file(emptied + "/layout.tsv", layout);
  write_whole_file(emptied + "/failed", "");
}

bool TaskParts::failed(int task) const { return fs::exists(part(task) + "/failed"); }

void TaskParts::gather(int tasks) const {
  std::vector<HashedRun> runs;
  for (const char* table : kTables) {
    std::string all;
    for (int task = 0; task < tasks; ++task)
      if (done(task) || failed(task)) append_rows(part(task) + "/" + table, all);
    if (!all.empty()) write_whole_file(folder_ + "/" + table, all);
  }
  for (int task = 0; task < tasks; ++task) {
    if (!done(task)) continue;
    for (const char* name : kFolders) move_files(part(task) + "/" + name, folder_ + "/" + name);
    if (fs::exists(part(task) + "/hashes.tsv"))
      for (HashedRun& run : read_hashes(part(task))) runs.push_back(std::move(run));
  }
  write_hashes(folder_, runs);
  // In one step: a run that is killed here must not go on with what is left of the parts.
  const std::string finished = folder_ + "/parts.finished";
  fs::remove_all(finished);
  fs::rename(folder_ + "/parts", finished);
  fs::remove_all(finished);
}

}  // namespace numemu::oracle::recording
