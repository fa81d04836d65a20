#include "experiments/engine/losses_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "formats/error.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/output_files.hpp"

namespace numemu::experiments {
namespace {

constexpr const char* kFolder = "losses";
constexpr std::string_view kExtension = ".npy";
constexpr std::int64_t kMostHeader = 4096;
constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Below the folder. A row may be another's: it leads to no other place.
std::string file_of(const std::string& key) { return fmt::format("{}/{}.npy", kFolder, key); }

bool is_key(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

/// RFC 4648, with padding.
std::string base64(const std::vector<std::uint8_t>& bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) { return i + k < bytes.size() ? bytes[i + k] : 0u; };
    const std::uint32_t group = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (std::size_t k = 0; k < 4; ++k)
      out += i + k < bytes.size() + 1 ? kBase64Digits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

/// The bytes that base64() gives the text for; nothing for any other text.
std::optional<std::vector<std::uint8_t>> read_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::vector<std::uint8_t> bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t digit = i + padding < text.size() ? kBase64Digits.find(text[i]) : 0;
    if (digit == kBase64Digits.npos) return std::nullopt;
    group = group << 6 | static_cast<std::uint32_t>(digit);
    for (int shift = 16; i % 4 == 3 && shift >= 0; shift -= 8)
      bytes.push_back(static_cast<std::uint8_t>(group >> shift));
  }
  bytes.resize(bytes.size() - padding);
  // Bits behind the last byte are zero in what base64() gives.
  return base64(bytes) == text ? std::optional(std::move(bytes)) : std::nullopt;
}

}  // namespace

RowAnswers row_answers(const std::vector<std::uint8_t>& right) {
  const auto n = std::min<std::size_t>(right.size(), kMostAnswers);
  std::vector<std::uint8_t> bytes((n + 7) / 8);
  for (std::size_t i = 0; i < n; ++i)
    bytes[i / 8] |= static_cast<std::uint8_t>((right[i] != 0 ? 1 : 0) << i % 8);
  return {n, base64(bytes)};
}

std::optional<std::vector<std::uint8_t>> read_answers(const RowAnswers& answers) {
  const std::uint64_t n = answers.n;
  if (n > kMostAnswers || answers.right.size() > 4 * kMostAnswers) return std::nullopt;
  const std::optional<std::vector<std::uint8_t>> bytes = read_base64(answers.right);
  if (!bytes || bytes->size() != (n + 7) / 8) return std::nullopt;
  std::vector<std::uint8_t> right(n);
  for (std::size_t i = 0; i < n; ++i) right[i] = (*bytes)[i / 8] >> i % 8 & 1;
  return right;
}

std::string answer_text(const std::vector<std::uint8_t>& right) {
  std::string text;
  for (const std::uint8_t one : right) text += one != 0 ? '1' : '0';
  return text;
}

std::string losses_folder(const std::string& folder) { return folder + "/" + kFolder; }

Member<RowLosses> write_losses(const std::string& folder, const std::string& key,
                               const JudgedSums& sums) {
  const net::ScoreTable& table = sums.table;
  if (sums.score == nullptr || table.sums.size() * sizeof(double) > kMostLossBytes) return {};
  make_folder(losses_folder(folder));
  PendingFile file = pending_npy(folder + "/" + file_of(key), ArrayType::float64,
                                 {table.samples(), table.columns}, table.sums.data());
  RowLosses losses{file_of(key), file.sha256(), std::string(sums.score->name)};
  file.commit();
  return losses;
}

JudgedSums read_losses(const std::string& folder, const Row& row) {
  if (!row.losses) throw Error(fmt::format("row {}: expected losses", row.key.substr(0, 12)));
  const RowLosses& losses = *row.losses;
  const std::string &key = row.key, &name = losses.file;
  if (!is_key(key) || name != file_of(key))
    throw Error(fmt::format("row {}: losses.file: expected {}, not '{}'", key.substr(0, 12),
                            file_of("KEY"), name.substr(0, 80)));
  JudgedSums out{&net::find_score(losses.score), {}};
  InputFile file(folder + "/" + name);
  if (file.left() > kMostLossBytes + kMostHeader)
    file.fail(fmt::format("expected at most {} bytes of losses", kMostLossBytes));
  file.rewind(true);
  const numemu::Array array = read_npy(file);
  if (file.sha256() != losses.digest)
    file.fail_at(0, "not the losses that were written with the row (digest does not match)");
  if (array.type != ArrayType::float64 || array.shape.size() != 2 || array.shape[1] < 2 ||
      array.shape[1] % 2 != 0)
    file.fail_at(0, "expected float64 [samples, columns], columns even, found " +
                        std::string(to_string(array.type)) + " " + shape_text(array.shape));
  out.table.columns = array.shape[1];
  out.table.sums.assign(array.as<double>(), array.as<double>() + array.elements());
  return out;
}

void remove_losses(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path losses = losses_folder(folder);
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator at(losses, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.ends_with(kExtension) && is_key(std::string_view(name).substr(0, name.size() - 4)))
      files.push_back(at->path());
  }
  for (const std::filesystem::path& file : files) std::filesystem::remove(file, error);
}

}  // namespace numemu::experiments
