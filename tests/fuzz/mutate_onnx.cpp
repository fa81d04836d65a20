// A file becomes a tree of fields, one thing in it changes, and it is written again. Field numbers
// are those of onnx.proto.
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/model/onnx/wire.hpp"
#include "formats/error.hpp"
#include "tests/fuzz/mutate.hpp"

namespace numemu::net {

#define NUMEMU_ONNX_OPERATORS(stem) const OnnxHandlers& onnx_##stem##_handlers();
#include "emu/net/model/onnx/operators/table.inc"
#undef NUMEMU_ONNX_OPERATORS

}  // namespace numemu::net

namespace numemu::fuzz {
namespace {

using net::Wire;

/// The messages that are followed; what else has a length is bytes.
enum class Record {
  none,
  model,
  graph,
  node,
  attribute,
  tensor,
  value,
  type,
  tensor_type,
  shape,
  dimension,
  operator_set
};

struct Field {
  std::uint32_t number = 0;
  Wire wire = Wire::varint;
  std::uint64_t word = 0;
  std::string bytes = "";
  Record record = Record::none;  ///< of the fields inside, which then stand for the bytes
  std::vector<Field> inside = {};
};

/// What a field of a record holds, where more than its wire type is known.
enum class Holds {
  bytes,
  record,
  name,
  op,
  attribute_name,
  data_type,
  attribute_type,
  numbers,
  words
};

struct Known {
  Record in;
  std::uint32_t number;
  Holds holds;
  Record record = Record::none;
};

constexpr Known kKnown[] = {{Record::model, 7, Holds::record, Record::graph},
                            {Record::model, 8, Holds::record, Record::operator_set},
                            {Record::graph, 1, Holds::record, Record::node},
                            {Record::graph, 5, Holds::record, Record::tensor},
                            {Record::graph, 11, Holds::record, Record::value},
                            {Record::graph, 12, Holds::record, Record::value},
                            {Record::graph, 13, Holds::record, Record::value},
                            {Record::node, 1, Holds::name},
                            {Record::node, 2, Holds::name},
                            {Record::node, 4, Holds::op},
                            {Record::node, 5, Holds::record, Record::attribute},
                            {Record::attribute, 1, Holds::attribute_name},
                            {Record::attribute, 5, Holds::record, Record::tensor},
                            {Record::attribute, 6, Holds::record, Record::graph},
                            {Record::attribute, 7, Holds::words},
                            {Record::attribute, 8, Holds::numbers},
                            {Record::attribute, 10, Holds::record, Record::tensor},
                            {Record::attribute, 11, Holds::record, Record::graph},
                            {Record::attribute, 20, Holds::attribute_type},
                            {Record::tensor, 1, Holds::numbers},
                            {Record::tensor, 2, Holds::data_type},
                            {Record::tensor, 4, Holds::words},
                            {Record::tensor, 5, Holds::numbers},
                            {Record::tensor, 7, Holds::numbers},
                            {Record::tensor, 8, Holds::name},
                            {Record::tensor, 9, Holds::words},
                            {Record::value, 1, Holds::name},
                            {Record::value, 2, Holds::record, Record::type},
                            {Record::type, 1, Holds::record, Record::tensor_type},
                            {Record::tensor_type, 1, Holds::data_type},
                            {Record::tensor_type, 2, Holds::record, Record::shape},
                            {Record::shape, 1, Holds::record, Record::dimension}};

const Known& known(Record in, std::uint32_t number) {
  static constexpr Known kOther{Record::none, 0, Holds::bytes};
  const auto* const row = std::ranges::find_if(
      kKnown, [&](const Known& k) { return k.in == in && k.number == number; });
  return row == std::end(kKnown) ? kOther : *row;
}

constexpr int kDeepest = 64;  ///< messages inside each other; what is deeper is bytes
constexpr std::uint64_t kSmall = 16, kAttributeTypes = 15;

/// Bits of an element of each data type, 0 where it has no such size.
constexpr std::uint64_t kBits[] = {0,  32, 8,   8,  16, 16, 32, 64, 0, 8, 16, 64, 32,
                                   64, 64, 128, 16, 8,  8,  8,  8,  4, 4, 4,  8};

constexpr std::uint64_t kNumbers[] = {0x7f,        0x80,        0xff,
                                      0x7fff'ffff, 0x8000'0000, 0xffff'ffff,
                                      1ULL << 40,  1ULL << 62,  0x7fff'ffff'ffff'ffff,
                                      1ULL << 63,  1ULL << 32,  1ULL << 24};
/// 0, -0, 1, -1, 0.5, 2^24, 3e38, the smallest, infinities, NaN as float32.
constexpr std::uint32_t kFloats[] = {0,           0x8000'0000, 0x3f80'0000, 0xbf80'0000,
                                     0x3f00'0000, 0x4b80'0000, 0x7f61'b1e6, 1,
                                     0x7f80'0000, 0xff80'0000, 0x7fc0'0000};

constexpr std::string_view kAttributes[] = {"axis",
                                            "axes",
                                            "perm",
                                            "kernel_shape",
                                            "strides",
                                            "pads",
                                            "dilations",
                                            "group",
                                            "auto_pad",
                                            "ceil_mode",
                                            "keepdims",
                                            "alpha",
                                            "beta",
                                            "epsilon",
                                            "to",
                                            "value",
                                            "equation",
                                            "k",
                                            "largest",
                                            "mode",
                                            "scales",
                                            "split",
                                            "num_outputs",
                                            "starts",
                                            "ends",
                                            "block_size",
                                            "blocksize",
                                            "direction",
                                            "hidden_size",
                                            "layout",
                                            "batch_dims",
                                            "upper",
                                            "exclusive",
                                            "reverse",
                                            "num_groups",
                                            "stash_type",
                                            "output_padding",
                                            "output_shape",
                                            "storage_order",
                                            "count_include_pad",
                                            "allowzero",
                                            "noop_with_empty_axes",
                                            "reduction",
                                            "ignore_index",
                                            "p",
                                            "dtype",
                                            "min",
                                            "max",
                                            "size",
                                            "activations",
                                            "linear_before_reset",
                                            "transA",
                                            "transB",
                                            "bits",
                                            "K",
                                            "N",
                                            "num_heads"};

/// Operators that the importer has, and those that it folds or unrolls.
const std::vector<std::string_view>& operators() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> names = {"Constant", "If", "Loop", "Scan", "Shape", "NonZero"};
#define NUMEMU_ONNX_OPERATORS(stem) \
  for (const auto& handler : net::onnx_##stem##_handlers()) names.push_back(handler.first);
#include "emu/net/model/onnx/operators/table.inc"
#undef NUMEMU_ONNX_OPERATORS
    return names;
  }();
  return all;
}

std::vector<Field> parsed(const std::string& path, std::string_view body, Record in, int depth) {
  std::vector<Field> fields;
  net::WireReader reader(path, body);
  for (net::WireField read; reader.next(read);) {
    Field field{read.number, read.wire, read.word, std::string(read.bytes)};
    const Known& k = known(in, read.number);
    if (k.record != Record::none && read.wire == Wire::bytes && depth < kDeepest) {
      try {
        field.inside = parsed(path, read.bytes, k.record, depth + 1);
        field.record = k.record;
      } catch (const Error&) {  // it stays as bytes
      }
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

std::string written(const std::vector<Field>& fields) {
  std::string out;
  for (const Field& field : fields) {
    const std::string inside = field.record == Record::none ? field.bytes : written(field.inside);
    net::put_field(out, {field.number, field.wire, field.word, inside, 0});
  }
  return out;
}

/// A field where it stands.
struct Place {
  std::vector<Field>* list;
  std::size_t at;
  Record in;
  Field& field() const { return (*list)[at]; }
  Holds holds() const { return known(in, field().number).holds; }
};

void add_places(std::vector<Field>& list, Record in, std::vector<Place>& places) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    places.push_back({&list, i, in});
    add_places(list[i].inside, list[i].record, places);
  }
}

class OnnxMutation {
 public:
  OnnxMutation(std::vector<Field>& file, std::vector<Field>& other, Random& random)
      : random_(random) {
    add_places(file, Record::model, places_);
    add_places(other, Record::model, others_);
  }

  void run() {
    if (places_.empty()) return;
    const Place place = random_.of(places_);
    std::vector<Field>& list = *place.list;
    const auto at = list.begin() + static_cast<std::ptrdiff_t>(place.at);
    switch (random_.below(10)) {
      case 0:
        list.erase(at);
        break;
      case 1:
        list.insert(somewhere(list), Field(*at));
        break;
      case 2:
        std::swap(*at, list[random_.below(list.size())]);
        break;
      case 3: {  // one of the same record, in its place or beside it
        const Place from = like(others_, [&](const Place& p) { return p.in == place.in; });
        if (from.list == nullptr) break;
        Field field = from.field();
        if (random_.below(2) == 0)
          *at = std::move(field);
        else
          list.insert(somewhere(list), std::move(field));
        break;
      }
      case 4:
        insert_node();
        break;
      case 5:
        refit_tensor();
        break;
      case 6:
        change_one(Holds::op);
        break;
      case 7:
        change_one(Holds::name);
        break;
      default:
        change(place);
        break;
    }
  }

 private:
  std::vector<Field>::iterator somewhere(std::vector<Field>& list) {
    return list.begin() + static_cast<std::ptrdiff_t>(random_.below(list.size() + 1));
  }

  /// One of the places that are such, without a list where there is none.
  template <class Such>
  Place like(const std::vector<Place>& places, Such such) {
    std::vector<Place> found;
    std::ranges::copy_if(places, std::back_inserter(found), such);
    return found.empty() ? Place{nullptr, 0, Record::none} : random_.of(found);
  }

  void change_one(Holds holds) {
    const Place place = like(places_, [&](const Place& p) { return p.holds() == holds; });
    if (place.list != nullptr) change(place);
  }

  std::uint64_t changed(std::uint64_t word) {
    switch (random_.below(6)) {
      case 0:
        return random_.of(kNumbers);
      case 1:
        return word + 1;
      case 2:
        return word - 1;
      case 3:
        return word ^ std::uint64_t{1} << random_.below(64);
      case 4:
        return 0 - static_cast<std::uint64_t>(random_.below(kSmall));
      default:
        return random_.below(kSmall);
    }
  }

  /// Numbers in a field of bytes: one is changed, goes or comes again.
  std::string changed_numbers(const Field& field) {
    std::vector<std::uint64_t> words;
    const std::string path;
    try {
      const net::WireReader reader(path, field.bytes);
      const net::WireField read{field.number, field.wire, 0, field.bytes, 0};
      reader.count(read, Wire::varint, "");
      reader.for_each(read, Wire::varint, [&](std::uint64_t word) { words.push_back(word); });
    } catch (const Error&) {
      return "";
    }
    const std::size_t at = random_.below(words.size());
    const auto place = words.begin() + static_cast<std::ptrdiff_t>(at);
    if (words.empty() || random_.below(4) == 0)
      words.insert(place, random_.below(kSmall));
    else if (random_.below(4) == 0)
      words.erase(place);
    else
      words[at] = changed(words[at]);
    std::string out;
    for (const std::uint64_t word : words) net::put_varint(out, word);
    return out;
  }

  /// A word of 1, 2, 4 or 8 bytes at its place in an array.
  void change_word(std::string& bytes) {
    const std::size_t width = std::size_t{1} << random_.below(4);
    if (bytes.size() < width) return;
    const std::size_t at = random_.below(bytes.size() / width) * width;
    const std::uint64_t word = width == 4 && random_.below(2) == 0
                                   ? std::uint64_t{random_.of(kFloats)}
                                   : changed(static_cast<std::uint8_t>(bytes[at]));
    for (std::size_t i = 0; i < width; ++i) bytes[at + i] = static_cast<char>(word >> 8 * i);
  }

  void change(const Place& place) {
    Field& field = place.field();
    const Holds holds = place.holds();
    if (field.wire != Wire::bytes) {
      if (holds == Holds::data_type)
        field.word = random_.below(std::size(kBits) + 1);
      else if (holds == Holds::attribute_type)
        field.word = random_.below(kAttributeTypes + 1);
      else
        field.word = field.wire == Wire::fixed32 ? random_.of(kFloats) : changed(field.word);
      return;
    }
    if (field.record != Record::none) return;
    switch (holds) {
      case Holds::op:
        field.bytes = random_.of(operators());
        break;
      case Holds::attribute_name:
        field.bytes = random_.of(kAttributes);
        break;
      case Holds::name:
        field.bytes = random_.below(8) == 0 ? "" : any_name();
        break;
      case Holds::numbers:
        field.bytes = changed_numbers(field);
        break;
      case Holds::words:
        change_word(field.bytes);
        break;
      default:
        mutate_bytes(field.bytes, others_.empty() ? "" : random_.of(others_).field().bytes,
                     random_);
        break;
    }
  }

  /// A value of the file.
  std::string any_name() {
    const Place place = like(places_, [](const Place& p) { return p.holds() == Holds::name; });
    return place.list == nullptr ? "" : place.field().bytes;
  }

  Field attribute() {
    const Place from =
        like(others_, [](const Place& p) { return p.field().record == Record::attribute; });
    if (from.list != nullptr && random_.below(2) == 0) return from.field();
    Field made{5, Wire::bytes, 0, "", Record::attribute};
    made.inside.push_back({1, Wire::bytes, 0, std::string(random_.of(kAttributes))});
    const std::uint32_t kinds[] = {1, 2, 6,
                                   7};  // types and their fields: f 2, i 3, floats 7, ints 8
    const std::uint32_t kind = random_.of(kinds);
    for (std::size_t n = kind > 2 ? random_.below(5) : 1; n > 0; --n) {
      if (kind % 5 == 1)  // of floats
        made.inside.push_back({kind + 1, Wire::fixed32, random_.of(kFloats)});
      else
        made.inside.push_back({kind + 1, Wire::varint, changed(random_.below(kSmall))});
    }
    made.inside.push_back({20, Wire::varint, kind});
    return made;
  }

  /// A node that reads what another one gave and gives it under its name.
  void insert_node() {
    const Place place =
        like(places_, [](const Place& p) { return p.field().record == Record::node; });
    if (place.list == nullptr) return;
    Field& before = place.field();
    const auto output = std::ranges::find(before.inside, 2U, &Field::number);
    if (output == before.inside.end()) return;
    Field node{1, Wire::bytes, 0, "", Record::node};
    const std::string result = output->bytes;
    output->bytes = "between" + std::to_string(random_.below(1000));
    node.inside.push_back({1, Wire::bytes, 0, output->bytes});
    for (std::size_t n = random_.below(4); n > 0; --n)
      node.inside.push_back({1, Wire::bytes, 0, any_name()});
    node.inside.push_back({2, Wire::bytes, 0, result});
    node.inside.push_back({4, Wire::bytes, 0, std::string(random_.of(operators()))});
    for (std::size_t n = random_.below(3); n > 0; --n) node.inside.push_back(attribute());
    place.list->insert(place.list->begin() + static_cast<std::ptrdiff_t>(place.at) + 1,
                       std::move(node));
  }

  /// Another shape or type of a tensor, whose data have the size of it.
  void refit_tensor() {
    const Place place =
        like(places_, [](const Place& p) { return p.field().record == Record::tensor; });
    if (place.list == nullptr) return;
    std::vector<Field>& tensor = place.field().inside;
    std::vector<std::uint64_t> dims;
    std::uint64_t type = 1;
    std::string data;
    for (const Field& field : tensor) {
      if (field.number == 1 && field.wire == Wire::varint) dims.push_back(field.word);
      if (field.number == 1 && field.wire == Wire::bytes) {
        for (const char extent : field.bytes) dims.push_back(static_cast<std::uint8_t>(extent));
      }
      if (field.number == 2) type = field.word;
      if (field.wire == Wire::bytes && (field.number == 4 || field.number == 9)) data = field.bytes;
    }
    switch (random_.below(4)) {
      case 0:
        dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(random_.below(dims.size() + 1)),
                    random_.below(4));
        break;
      case 1:
        if (!dims.empty())
          dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(random_.below(dims.size())));
        break;
      case 2:
        if (!dims.empty()) dims[random_.below(dims.size())] = random_.below(kSmall);
        break;
      default:
        type = random_.below(std::size(kBits));
        break;
    }
    constexpr std::uint64_t kMostBits = 1 << 16;
    std::uint64_t bits = type < std::size(kBits) ? kBits[type] : 0;
    for (const std::uint64_t extent : dims)
      bits = std::min(bits, kMostBits) * std::min(extent, kMostBits);
    if (bits > kMostBits) return;
    const std::string old = data.empty() ? std::string(1, '\0') : data;
    data.clear();
    while (data.size() < (bits + 7) / 8) data += old;
    data.resize((bits + 7) / 8);
    std::erase_if(tensor, [](const Field& field) {
      return field.number <= 7 || field.number >= 9;  // but its name
    });
    for (const std::uint64_t extent : dims) tensor.push_back({1, Wire::varint, extent});
    tensor.push_back({2, Wire::varint, type});
    tensor.push_back({9, Wire::bytes, 0, data});
  }

  Random& random_;
  std::vector<Place> places_, others_;
};

}  // namespace

void mutate_onnx(std::string& bytes, const std::string& other, Random& random) {
  if (random.below(8) == 0) return mutate_bytes(bytes, other, random);
  const std::string path;
  std::vector<Field> file, from;
  try {
    file = parsed(path, bytes, Record::model, 0);
  } catch (const Error&) {
    return mutate_bytes(bytes, other, random);
  }
  try {
    from = parsed(path, other, Record::model, 0);
  } catch (const Error&) {
    from = file;
  }
  OnnxMutation(file, from, random).run();
  std::string changed = written(file);
  if (changed.size() <= kLongest) bytes = std::move(changed);
}

std::size_t mutated_onnx(std::span<const std::uint8_t> input, std::span<const std::uint8_t> other,
                         std::span<std::uint8_t> out, std::uint64_t seed) {
  const std::string before(input.begin(), input.end()), from(other.begin(), other.end());
  std::string bytes = before;
  Random random(seed);
  for (std::size_t n = random.below(4) + 1; n > 0; --n) mutate_onnx(bytes, from, random);
  if (bytes.size() > out.size()) bytes = before.substr(0, out.size());
  std::ranges::copy(bytes, out.begin());
  return bytes.size();
}

}  // namespace numemu::fuzz
