// The command `replay`: its options, what it reads, what it prints.
#include "tests/oracle/cuda/replay/command.hpp"

#include <filesystem>
#include <thread>

#include "tests/oracle/cuda/conversions/replay.hpp"
#include "tests/oracle/cuda/replay/chips.hpp"
#include "tests/oracle/cuda/replay/golden.hpp"
#include "tests/oracle/cuda/replay/hash_check.hpp"
#include "tests/oracle/cuda/replay/report.hpp"

namespace numemu::oracle::recording::replay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsage =
    "replay FOLDER [--golden] [--chip C] [--rule TEXT] [--first N]\n"
    "replay FOLDER --hashes [--only TEXT]\n"
    "  FOLDER     holds index.tsv, its files and perhaps probes.tsv; --golden: index_mmasim.tsv "
    "and "
    "index_hw_leeds.tsv\n"
    "  --chip C   the rules of chip C instead of those of each file's unit\n"
    "  --rule T   only rivals whose name holds T; their first mismatches are printed in full\n"
    "  --first N  only the first N records of each file\n"
    "  --hashes   every dot of the large runs computed again and compared by hash (seconds an "
    "instruction); --only those whose kind and name hold TEXT\n"
    "Exit: 0 the specification's rules answer as recorded, 1 they do not, 2 bad input.\n";

struct Options {
  std::string folder;
  bool golden = false, hashes = false;
  std::string only;
  Choice choice;
};

std::size_t count_of(const std::string& digits) {
  const bool good = !digits.empty() && digits.size() <= 9 &&
                    digits.find_first_not_of("0123456789") == std::string::npos;
  if (!good || std::stoul(digits) == 0)
    throw BadInput("--first: expected a number from 1 to 999999999, got \"" + digits + "\"");
  return std::stoul(digits);
}

Options options_of(const std::vector<std::string>& words) {
  Options o;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&] {
      if (++i == words.size()) throw BadInput(word + ": expected a value");
      return words[i];
    };
    if (word == "--golden") {
      o.golden = true;
    } else if (word == "--chip") {
      const std::string gpu = value();
      o.choice.chip = chip_of(gpu);
      if (o.choice.chip.empty())
        throw BadInput("--chip: expected one of " + chip_names() + ", got \"" + gpu + "\"");
    } else if (word == "--rule") {
      o.choice.rule_text = value();
    } else if (word == "--hashes") {
      o.hashes = true;
    } else if (word == "--only") {
      o.only = value();
    } else if (word == "--first") {
      o.choice.first = count_of(value());
    } else if (!word.empty() && word[0] != '-' && o.folder.empty()) {
      o.folder = word;
    } else {
      throw BadInput("expected FOLDER and options, got \"" + word + "\"\n" + kUsage);
    }
  }
  if (o.folder.empty()) throw BadInput(std::string("expected FOLDER\n") + kUsage);
  return o;
}

/// A run on conversions alone has neither an index nor records.
bool holds_conversions_alone(const std::string& folder) {
  return !fs::exists(folder + "/index.tsv") && !fs::exists(folder + "/records") &&
         fs::exists(folder + "/conversions.tsv");
}

Records read(const Options& o) {
  if (!o.golden && holds_conversions_alone(o.folder)) return {};
  if (!o.golden) {
    Records records = read_records(o.folder, o.folder + "/index.tsv");
    const std::string probes = o.folder + "/probes.tsv";
    if (fs::exists(probes)) name_probes(probes, records);
    return records;
  }
  Records records = read_records(o.folder, o.folder + "/index_mmasim.tsv");
  const Records hardware = read_hardware_records(o.folder);
  records.files.insert(records.files.end(), hardware.files.begin(), hardware.files.end());
  return records;
}

int replay(const Options& o, std::FILE* out) {
  if (o.hashes) {
    const int threads = static_cast<int>(std::thread::hardware_concurrency());
    const int wrong = check_hashes(o.folder, o.only, threads, out);
    std::fprintf(out, "\n%d large runs differ from the specification's rules\n", wrong);
    return wrong == 0 ? 0 : 1;
  }
  const Records records = read(o);
  if (records.files.empty() && (o.golden || !holds_conversions_alone(o.folder)))
    throw BadInput(o.folder + ": the index names no records to replay");
  for (const Skipped& s : records.skipped)
    std::fprintf(out, "%s: not replayed, %s\n", s.file.c_str(), s.reason.c_str());
  std::vector<Judgement> judgements;
  std::size_t total = 0, unknown = 0, mismatches = 0;
  for (const RecordFile& file : records.files) {
    judgements.push_back(judge(file, o.choice));
    const Judgement& j = judgements.back();
    print_file(out, j, !o.choice.rule_text.empty());
    print_closest(out, j);
    total += j.records;
    if (j.verdicts.empty()) {
      unknown += j.records;
    } else {
      mismatches += j.verdicts.front().mismatches;
    }
  }
  print_questions(out, standings(judgements));
  print_refuted(out, judgements);
  int conversions = 0;
  if (!o.golden) conversions = print_tallies(replay_conversions(o.folder), out);
  if (conversions != 0)
    std::fprintf(out, "\n%d conversions answer otherwise than their rules\n", conversions);
  std::fprintf(
      out,
      "\n%zu files, %zu records: %zu mismatches with the specification's rules; %zu records "
      "without a rule\n",
      records.files.size(), total, mismatches, unknown);
  if (total != 0 && unknown == total)
    throw BadInput("no rule is known for any record: --chip names a chip whose rules to take");
  return mismatches == 0 && conversions == 0 ? 0 : 1;
}

}  // namespace

int replay_command(const std::vector<std::string>& words, std::FILE* out, std::FILE* errors) {
  try {
    if (words.size() == 1 && words[0] == "--help") {
      std::fputs(kUsage, out);
      return 0;
    }
    return replay(options_of(words), out);
  } catch (const std::exception& error) {
    std::fprintf(errors, "replay: %s\n", error.what());
    return 2;
  }
}

}  // namespace numemu::oracle::recording::replay
