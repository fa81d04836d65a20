#include "cli/verify_folder.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include "cli/command.hpp"
#include "cli/folder_report.hpp"
#include "cli/product.hpp"
#include "emu/oracle/replay/conversion_judge.hpp"
#include "emu/oracle/replay/hash_judge.hpp"
#include "emu/oracle/replay/record_judge.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"

namespace numemu::cli {
namespace {

int verify_hashes(const FolderOptions& o) {
  std::error_code error;
  if (!std::filesystem::exists(o.folder + "/hashes.tsv", error))
    throw Error(o.folder +
                "/hashes.tsv: cannot open: --hashes needs the large runs that "
                "tests/oracle/cuda/run records");
  std::vector<oracle::HashVerdict> all;
  oracle::judge_hashes(o.folder, o.only, [&](const oracle::HashVerdict& v) {
    all.push_back(v);
    if (o.json) return;
    fmt::print("{}", hash_line(v));
    std::fflush(stdout);  // a line every few seconds
  });
  if (all.empty()) throw Error(o.folder + "/hashes.tsv: expected large runs, found none");
  if (!o.junit.empty()) write_atomically(o.junit, {hashes_junit(all, o.folder)});
  std::int64_t differ = 0;
  for (const oracle::HashVerdict& v : all) differ += v.differ != 0;
  if (o.json) {
    fmt::print("{}\n", hashes_json(all).dump(2));
  } else {
    fmt::print("\n{} of {} large runs differ from their units\n", differ, all.size());
  }
  return differ == 0 ? kFine : kMismatch;
}

}  // namespace

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

int verify_folder(const FolderOptions& o) {
  if (!oracle::is_record_folder(o.folder))
    throw Error(o.folder +
                ": expected index.tsv or conversions.tsv, as tests/oracle/cuda/run writes them");
  if (o.hashes) return verify_hashes(o);
  FolderReport report;
  report.folder = oracle::read_record_folder(o.folder, o.only);
  report.judgements =
      oracle::judge(report.folder, o.unit.empty() ? nullptr : unit_named(o.unit).description());
  report.conversions = oracle::judge_conversions(o.folder, o.only);
  if (report.judgements.empty() && report.conversions.empty())
    throw Error(o.folder + ": expected records to verify, found none");
  if (report.without_rule() == report.records() && report.conversions.empty())
    throw Error(o.folder + ": expected a chip of the catalogue in the column unit, or --unit");
  if (!o.junit.empty()) write_atomically(o.junit, {folder_junit(report, o.folder)});
  fmt::print("{}", o.json ? folder_json(report).dump(2) + "\n" : folder_text(report));
  return report.holds() ? kFine : kMismatch;
}

}  // namespace numemu::cli
