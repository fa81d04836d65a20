// Finds formats by name, alias, descriptor or codebook file; the rows come from formats.def.
// Cold: a negligible share of any run (docs/build.md).
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "formats/blocks/block_format.hpp"
#include "formats/codebook.hpp"
#include "formats/descriptor.hpp"
#include "formats/error.hpp"
#include "formats/format.hpp"
#include "formats/suggest.hpp"

namespace numemu {
namespace {

struct Row {
  Format format;
  std::string aliases;  // separated by spaces
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
#define NUMEMU_FLOAT(name, E, M, bias, specials, field_zero, is_signed, shift, aliases, source, \
                     doc)                                                                       \
  Row{{#name, Kind::floating, is_signed, (is_signed ? 1 : 0) + E + M, E, M, bias,               \
       Specials::specials, FieldZero::field_zero, shift, source, doc},                          \
      aliases},
#define NUMEMU_INTEGER(name, bits, is_signed, aliases, source, doc)                               \
  Row{{#name, Kind::integer, is_signed, bits, 0, 0, 0, Specials::finite, FieldZero::subnormal, 0, \
       source, doc},                                                                              \
      aliases},
#define NUMEMU_SIGN(name, aliases, source, doc)                                                  \
  Row{{#name, Kind::sign, true, 1, 0, 0, 0, Specials::finite, FieldZero::scale, 0, source, doc}, \
      aliases},
#include "formats/formats.def"
#undef NUMEMU_FLOAT
#undef NUMEMU_INTEGER
#undef NUMEMU_SIGN
  };
  return table;
}

std::vector<std::string> split(const std::string& words) {
  std::vector<std::string> list;
  for (std::size_t at = words.find_first_not_of(' '); at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    list.push_back(words.substr(at, end - at));
    at = words.find_first_not_of(' ', end);
  }
  return list;
}

using Index = std::map<std::string, const Format*, std::less<>>;

const Index& index_of_names() {
  static const Index index = [] {
    Index map;
    for (const Row& row : rows()) {
      map.emplace(row.format.name, &row.format);
      for (const std::string& alias : split(row.aliases)) map.emplace(alias, &row.format);
    }
    return map;
  }();
  return index;
}

bool same_encoding(const Format& a, const Format& b) {
  return a.kind == b.kind && a.bits == b.bits && a.is_signed == b.is_signed &&
         a.exponent_bits == b.exponent_bits && a.mantissa_bits == b.mantissa_bits &&
         a.bias == b.bias && a.specials == b.specials && a.field_zero == b.field_zero &&
         a.container_shift == b.container_shift;
}

// One record per name and source, kept for the program's life. The source of a codebook is the
// digest of its entries: a file that has changed is another format.
const Format& keep(Format format) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<const Format>> kept;
  const std::lock_guard lock(mutex);
  auto& slot = kept[format.name + '\n' + format.source];
  if (!slot) slot = std::make_unique<const Format>(std::move(format));
  return *slot;
}

// A described format: the first row with the same encoding, else a record of its own.
const Format& keep_described(Format described) {
  for (const Row& row : rows())
    if (same_encoding(row.format, described)) return row.format;
  return keep(std::move(described));
}

// FILE of "codebook(FILE)".
std::optional<std::string> codebook_path(std::string_view name) {
  constexpr std::string_view kOpen = "codebook(";
  if (!name.starts_with(kOpen)) return {};
  if (!name.ends_with(')') || name.size() == kOpen.size() + 1)
    throw Error("format '" + std::string(name) + "': expected codebook(FILE.npy)");
  return std::string(name.substr(kOpen.size(), name.size() - kOpen.size() - 1));
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Says what is wrong with names whose meaning is clear and which no edit distance explains.
void refuse_known_shapes(std::string_view name) {
  const std::string quoted = "'" + std::string(name) + "'";
  if (const std::string block = block_format_meant(name); !block.empty())
    throw Error(quoted + " is a block format: quantize --block " + block);
  for (const std::string_view head : {"int", "uint"}) {
    if (name.starts_with(head) && all_digits(name.substr(head.size())))
      throw Error("unknown format " + quoted + ": expected " + std::string(head) +
                  (head == "int" ? "2" : "1") + " to " + std::string(head) +
                  "16, or another format of `numemu formats`");
  }
  constexpr std::string_view kP3109 = "binary";
  if (name.starts_with(kP3109) && name.size() > kP3109.size() &&
      all_digits(name.substr(kP3109.size(), 1)))
    throw Error("unknown format " + quoted +
                ": expected binary{K}p{P}{s|u}{e|f}, such as binary8p3se: width K, precision P, "
                "signed or unsigned, extended (with infinities) or finite");
}

}  // namespace

const Format& find_format(std::string_view name) {
  const Index& index = index_of_names();
  if (const auto found = index.find(name); found != index.end()) return *found->second;
  if (auto described = parse_descriptor(name)) return keep_described(*std::move(described));
  if (const auto path = codebook_path(name)) return keep(read_codebook_format(*path));
  refuse_known_shapes(name);
  std::vector<std::string> known;
  for (const auto& entry : index) known.push_back(entry.first);
  throw Error(unknown_name("format", name, known));
}

const std::vector<const Format*>& named_formats() {
  static const std::vector<const Format*> list = [] {
    std::vector<const Format*> pointers;
    for (const Row& row : rows()) pointers.push_back(&row.format);
    return pointers;
  }();
  return list;
}

std::vector<std::string> aliases_of(const Format& format) {
  for (const Row& row : rows())
    if (row.format.name == format.name) return split(row.aliases);
  return {};
}

}  // namespace numemu
