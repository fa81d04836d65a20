#include "tests/oracle/cuda/ask/ask_conversion.hpp"

#include <algorithm>
#include <cstdio>

#include "emu/oracle/recording/batch.hpp"
#include "emu/oracle/recording/hashes.hpp"
#include "tests/oracle/cuda/ask/written_file.hpp"

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

/// `wanted` of the places, evenly spread; all where there are no more.
std::vector<std::size_t> spread(const std::vector<std::size_t>& places, std::size_t wanted) {
  std::vector<std::size_t> kept(std::min(places.size(), wanted));
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = places[i * places.size() / kept.size()];
  return kept;
}

std::vector<std::size_t> range(std::size_t first, std::size_t last) {
  std::vector<std::size_t> places;
  for (std::size_t i = first; i < last; ++i) places.push_back(i);
  return places;
}

/// Of all 16-bit codes: the ends of each range, multiples of half a step of the target and their
/// neighbours.
std::vector<std::size_t> telling_codes(const Conversion& c, std::size_t count) {
  const ElementInfo from = info(c.a);
  const std::size_t sign = count / 2, fraction = std::size_t{1} << from.mantissa_bits;
  const int dropped = from.mantissa_bits - info(c.d).mantissa_bits;
  const std::size_t half = dropped > 0 ? std::size_t{1} << (dropped - 1) : fraction / 2;
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < count; ++at) {
    const std::size_t beside = at % half, magnitude = at % sign;
    const bool end = magnitude < 2 || magnitude + 1 == sign ||  // infinity and its neighbours:
                     (magnitude + fraction <= sign + 1 && magnitude + fraction + 1 >= sign);
    if (end || beside <= 1 || beside + 1 == half) places.push_back(at);
  }
  return places;
}

std::vector<std::size_t> choose_codes(const Conversion& c, std::size_t count, std::size_t wanted) {
  if (count <= wanted) return range(0, count);
  std::vector<std::size_t> chosen = spread(telling_codes(c, count), wanted * 3 / 4);
  // An odd stride meets every pattern of low bits.
  for (std::size_t at = 1; chosen.size() < wanted; at = (at + 40503) % count) chosen.push_back(at);
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

}  // namespace

bool lanes_agree(const Conversion& c, std::uint32_t answer) {
  for (int lane = 1; lane < c.lanes(); ++lane)
    if (lane_code(c, answer, lane) != lane_code(c, answer, 0)) return false;
  return true;
}

std::vector<std::size_t> choose_records(const Conversion& c, const std::vector<std::uint32_t>& in) {
  const auto wanted = static_cast<std::size_t>(kRecordedBytes / record_bytes(c));
  if (c.a != Element::f32) return choose_codes(c, in.size(), wanted);
  // Three quarters of what the specials leave go to numbers and midpoints, the rest to random
  // codes.
  const std::size_t specials = kSpecialInputs, random = in.size() - kRandomInputs;
  std::vector<std::size_t> chosen = range(0, specials);
  for (const std::size_t at : spread(range(specials, random), (wanted - specials) * 3 / 4))
    chosen.push_back(at);
  for (const std::size_t at : spread(range(random, in.size()), wanted - chosen.size()))
    chosen.push_back(at);
  return chosen;
}

std::vector<std::uint8_t> conversion_records(const Conversion& c,
                                             const std::vector<std::size_t>& chosen,
                                             const std::vector<std::uint32_t>& in,
                                             const std::vector<std::uint32_t>& answers) {
  const int in_bytes = info(c.a).bytes, out_bytes = info(c.d).bytes;
  std::vector<std::uint8_t> records(chosen.size() * static_cast<std::size_t>(record_bytes(c)));
  std::uint8_t* at = records.data();
  for (const std::size_t i : chosen) {
    store_code(at, in_bytes, in[i]);
    store_code(at + in_bytes, out_bytes, lane_code(c, answers[i], 0));
    at += in_bytes + out_bytes;
  }
  return records;
}

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
