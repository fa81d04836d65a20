#include "formats/storage/packed/packed_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/packed/gguf.hpp"
#include "formats/storage/packed/stored_numbers.hpp"
#include "formats/suggest.hpp"

namespace numemu {
namespace {

constexpr std::string_view kMagic = "GGUF";

/// Blocks of rows `first` .. of a tensor, as float32.
void read_ggml(const GgufEntry& entry, const PackedTensor& tensor, InputFile& file,
               std::int64_t first, std::int64_t count, float* out) {
  const std::int64_t block = ggml_block(entry.type), bytes = *ggml_bytes(entry.type, block);
  const std::int64_t from = first * tensor.length / block, blocks = count * tensor.length / block;
  std::vector<std::uint8_t> stored(static_cast<std::size_t>(blocks * bytes));
  if (blocks > 0) file.read_at(entry.begin + from * bytes, stored.data(), blocks * bytes);
  std::int64_t wrong = blocks;
#pragma omp parallel for schedule(static) reduction(min : wrong)
  for (std::int64_t b = 0; b < blocks; ++b)
    if (!decode_ggml_block(entry.type, stored.data() + b * bytes, out + b * block))
      wrong = std::min(wrong, b);
  if (wrong < blocks)
    fail_tensor(file.path(), entry.name,
                fmt::format("block {} at byte {}: expected finite scales, found {}", from + wrong,
                            entry.begin + (from + wrong) * bytes, "NaN or infinity"));
}

}  // namespace

bool is_gguf(std::string_view start) { return start.starts_with(kMagic); }

PackedFile::PackedFile(const std::string& path) : file_(std::make_unique<InputFile>(path)) {
  constexpr std::int64_t kLengthBytes = 8;
  const std::string start = file_->read(std::min(file_->left(), kLengthBytes + 1));
  file_->rewind();
  gguf_ = is_gguf(start);
  if (gguf_) {
    ggml_ = read_gguf_header(*file_);
    for (const GgufEntry& entry : ggml_.entries)
      items_.push_back({entry.name, ggml_layout(entry.type),
                        fmt::format("{} {}", ggml_type_name(entry.type), shape_text(entry.shape))});
    return;
  }
  if (start.size() <= kLengthBytes || start[kLengthBytes] != '{')
    file_->fail_at(0,
                   "expected safetensors (a length and a JSON header) or GGUF (the word GGUF), "
                   "found neither");
  header_ = read_safetensors_header(*file_);
  names_ = std::make_unique<SafetensorsNames>(path, file_->position(), header_);
  groups_ = packed_groups(*names_, header_);
  for (const PackedGroup& group : groups_)
    items_.push_back(
        {group.name, group.layout,
         fmt::format("{} {}", group.codes->type->name, shape_text(group.codes->shape))});
}

bool PackedFile::has_codes() const {
  return gguf_ || std::ranges::any_of(items_, [](const Item& item) {
           return item.layout != nullptr && item.layout->reader != PackedReader::plain;
         });
}

const std::vector<std::pair<std::string, std::string>>& PackedFile::metadata() const {
  return gguf_ ? ggml_.metadata : header_.metadata;
}

std::size_t PackedFile::index_of(const std::string& name) const {
  constexpr std::size_t kMostShown = 8;
  const auto listed = [&] {
    std::vector<std::string> names;
    for (const Item& item : items_) names.push_back(quote_name(item.name));
    return joined_first(names, ", ", kMostShown, " and {} others (--list)");
  };
  if (name.empty() && items_.size() == 1) return 0;
  if (name.empty())
    throw Error(fmt::format("{}: expected --tensor NAME, found {}{}", path(),
                            counted(std::ssize(items_), "tensor"),
                            items_.empty() ? "" : ": " + listed()));
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const std::string& codes = gguf_ ? items_[i].name : groups_[i].codes->name;
    if (items_[i].name == name || codes == name) return i;
  }
  // A layer's own name stands for its weight.
  for (std::size_t i = 0; i < items_.size(); ++i)
    if (items_[i].name == name + ".weight") return i;
  std::vector<std::string> known;
  for (const Item& item : items_) known.push_back(item.name);
  const auto nearest = suggested_name(name, known);
  throw Error(fmt::format("{}: no tensor {}; {}", path(), quote_name(name),
                          nearest ? "did you mean " + quote_name(*nearest) + "?"
                                  : "it has " + (known.empty() ? "none" : listed())));
}

PackedTensor PackedFile::ggml_tensor(std::size_t index) const {
  const GgufEntry& entry = ggml_.entries[index];
  PackedTensor tensor{.name = entry.name, .layout = items_[index].layout, .shape = entry.shape};
  tensor.count_rows();
  const std::int64_t block = ggml_block(entry.type);
  tensor.stored = block > 1 ? fmt::format("blocks of {}", block) : ggml_type_name(entry.type);
  tensor.read = [entry, whole = tensor](InputFile& file, std::int64_t first, std::int64_t count,
                                        float* out) {
    read_ggml(entry, whole, file, first, count, out);
  };
  return tensor;
}

PackedTensor PackedFile::tensor(const std::string& name, const PackedLayout* layout) const {
  const std::size_t i = index_of(name);
  const Item& item = items_[i];
  if (layout == nullptr) layout = item.layout;
  if (const SafetensorsEntry* const scales =
          layout == nullptr && !gguf_ ? scales_of_float(*names_, *groups_[i].codes) : nullptr)
    fail_tensor(path(), item.name,
                fmt::format("expected codes beside their scales {}, found {}, which they may scale "
                            "or not; --packed plain gives the numbers as they are",
                            quote_name(scales->name), item.stored));
  if (layout == nullptr)
    fail_tensor(path(), item.name,
                fmt::format("expected a layout that is read (docs/arrays.md), found {}{}",
                            item.stored, gguf_ ? "" : " without scales"));
  if (!gguf_) return open_packed(*names_, groups_[i], *layout);
  if (layout != item.layout)
    fail_tensor(path(), item.name,
                fmt::format("--packed {}: the file says {}", layout->name, item.stored));
  return ggml_tensor(i);
}

void PackedFile::read(const PackedTensor& tensor, std::int64_t first, std::int64_t count,
                      float* out) {
  tensor.read(*file_, first, count, out);
  constexpr auto kNeutralNan = std::uint32_t{0x7fc00000};
  for (std::int64_t i = 0; i < count * tensor.length; ++i)
    if (std::isnan(out[i])) out[i] = std::bit_cast<float>(kNeutralNan);
}

}  // namespace numemu
