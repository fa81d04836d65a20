#include "tests/oracle/cuda/ask/ask_conversion.hpp"

#include <algorithm>
#include <cstdio>

#include "emu/oracle/recording/hashes.hpp"
#include "emu/oracle/recording/whole_file.hpp"

namespace numemu::oracle::recording {
namespace {

std::string hash_of(const std::vector<std::uint32_t>& answers) {
  std::uint64_t hash = kFnvBasis;
  for (const std::uint32_t answer : answers) {
    std::uint8_t bytes[4];
    store_code(bytes, 4, answer);
    hash = fnv1a(hash, bytes, sizeof bytes);
  }
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace

std::int64_t ask_conversion(const Converter& convert, const Conversion& c,
                            const AskOptions& options, const std::string& folder) {
  const std::vector<std::uint32_t> in = conversion_inputs(c, options.seed);
  const std::vector<std::uint32_t> answers = convert(c, in);
  const std::vector<std::size_t> chosen = choose_records(c, in);
  const std::vector<std::uint8_t> records = conversion_records(c, chosen, in, answers);
  const auto disagree = std::count_if(answers.begin(), answers.end(), [&c](std::uint32_t answer) {
    return !lanes_agree(c, answer);
  });
  std::string stem = std::string("cvt__") + c.name;
  std::replace(stem.begin(), stem.end(), '.', '_');
  const std::string file = "conversions/" + stem + ".bin";
  write_whole_file(folder + "/" + file, std::string(records.begin(), records.end()));
  write_whole_file(folder + "/conversions.tsv",
                   table_line({"file", "unit", "instr", "from", "to", "record_bytes", "count",
                               "inputs", "seed", "hash", "lanes", "source"}) +
                       table_line({file, options.unit, c.name, info(c.a).name, info(c.d).name,
                                   std::to_string(record_bytes(c)), std::to_string(chosen.size()),
                                   std::to_string(in.size()), std::to_string(options.seed),
                                   hash_of(answers), std::to_string(disagree), options.source}));
  return static_cast<std::int64_t>(in.size());
}

}  // namespace numemu::oracle::recording
