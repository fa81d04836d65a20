#include "experiments/engine/bench/baseline_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/version.hpp"

namespace numemu::experiments {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = "numemu float32 baseline 4";
constexpr std::int64_t kMostHead = 1024;  // bytes beside those of the targets
constexpr std::int64_t kTargetBytes =
    76;  // at most: a digit, numbers of 32, 64, 64 and 64 bits, spaces
constexpr std::size_t kDigestLine = 7 + 64 + 1;

std::string digest_of(const net::Tensor& x) {
  return sha256_hex(fmt::format(
      "{} {}", joined(x.shape, "x"),
      sha256_hex({reinterpret_cast<const char*>(x.data.data()), x.data.size() * sizeof(float)})));
}

std::string key_of(const TrainedNet& trained, const net::Dataset& dataset,
                   const policies::FloatReference& reference, std::int64_t images) {
  std::string text = fmt::format("{}\nnumerics {}\n", kHead, kNumericsVersion);
  for (const auto& [name, value] : run_identity(trained))
    text += fmt::format("{} {}\n", name, value);
  const net::Graph& graph = baseline_graph(trained);
  for (const net::GraphInput& input : graph.inputs)
    text += fmt::format("input {} {}\n", input.name, joined(input.shape, "x"));
  for (const net::Node& node : graph.nodes)
    text += fmt::format("node {} {} {}\n", node.name, node.op->kind(), joined(node.inputs, " "));
  for (const net::Parameter* parameter : graph.parameters())
    text += fmt::format("parameter {} {}\n", parameter->name, digest_of(parameter->value));
  text += fmt::format("data {} {}\nimages {}\n", dataset.name(), dataset.digest(), images);
  for (const net::Tensor& batch : reference.batch)
    text += fmt::format("reference {}\n", digest_of(batch));
  text += fmt::format("logits {}\n", digest_of(reference.logits));
  return sha256_hex(text);
}

std::string head_of(const std::string& key) { return fmt::format("{}\nkey {}\n", kHead, key); }

/// The figures of an evaluation in whole numbers; a digit and an answer for each target, and of
/// float32_scores() a line each.
std::string text_of(const net::Evaluation& e, const std::string& key) {
  std::string text = head_of(key);
  text += fmt::format("{} {} {} {} {} {} {}\n", e.samples, e.n, e.correct, e.outputs.of,
                      e.outputs.nan, e.outputs.infinite, std::bit_cast<std::uint64_t>(e.loss));
  for (const std::uint8_t right : e.right) text += right != 0 ? '1' : '0';
  text += '\n';
  for (const std::int32_t answer : e.answers) text += fmt::format("{} ", answer);
  text += '\n';
  for (const net::ScoreTable& table : e.tables) {
    for (const double sum : table.sums)
      text += fmt::format("{} ", std::bit_cast<std::uint64_t>(sum));
    text += '\n';
  }
  return text + fmt::format("sha256 {}\n", sha256_hex(text));
}

std::optional<net::Evaluation> parse(const std::string& whole, const std::string& key,
                                     std::int64_t images, std::int64_t targets) {
  if (whole.size() < kDigestLine) return std::nullopt;
  const std::string text = whole.substr(0, whole.size() - kDigestLine), head = head_of(key);
  if (!text.starts_with(head) ||
      whole.substr(text.size()) != fmt::format("sha256 {}\n", sha256_hex(text)))
    return std::nullopt;
  std::istringstream in(text.substr(head.size()));
  net::Evaluation e;
  std::uint64_t loss = 0;
  std::string right;
  in >> e.samples >> e.n >> e.correct >> e.outputs.of >> e.outputs.nan >> e.outputs.infinite >>
      loss >> right;
  if (!in || e.samples != images || e.n != targets ||
      e.n != static_cast<std::int64_t>(right.size()) ||
      e.correct != std::count(right.begin(), right.end(), '1'))
    return std::nullopt;
  e.loss = std::bit_cast<double>(loss);
  for (const char digit : right) e.right.push_back(digit == '1');
  e.answers.resize(e.right.size());
  for (std::int32_t& answer : e.answers) in >> answer;
  in >> std::ws;
  for (std::string line; std::getline(in, line);) {
    net::ScoreTable& table = e.tables.emplace_back();
    std::istringstream sums(line);
    for (std::uint64_t sum = 0; sums >> sum;) table.sums.push_back(std::bit_cast<double>(sum));
    table.columns = std::ssize(table.sums) / std::max<std::int64_t>(1, images);
    if (table.columns == 0 || table.columns * images != std::ssize(table.sums)) return std::nullopt;
  }
  return e;
}

/// The files that were used longest ago go until the others fit.
void keep_small(const std::string& folder) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::int64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files.emplace_back(entry.last_write_time(), entry.path());
    bytes += static_cast<std::int64_t>(entry.file_size());
  }
  std::sort(files.begin(), files.end());
  for (auto file = files.begin(); bytes > BaselineCache::kMostBytes && file != files.end();
       ++file) {
    bytes -= static_cast<std::int64_t>(fs::file_size(file->second));
    fs::remove(file->second);
  }
}

}  // namespace

BaselineCache::BaselineCache(const std::string& folder, const TrainedNet& trained,
                             const net::Dataset& dataset, const policies::FloatReference& reference,
                             std::int64_t images)
    : images_(images), targets_(images * dataset.targets_per_sample()) {
  if (folder.empty() || targets_ > kMostTargets) return;
  folder_ = folder + "/baselines";
  key_ = key_of(trained, dataset, reference, images);
  path_ = fmt::format("{}/{}.txt", folder_, key_.substr(0, 32));
}

std::optional<net::Evaluation> BaselineCache::read() const {
  if (path_.empty()) return std::nullopt;
  try {
    InputFile file(path_);
    if (file.left() > kTargetBytes * kMostTargets + kMostHead) return std::nullopt;
    std::optional<net::Evaluation> kept = parse(file.read(file.left()), key_, images_, targets_);
    if (kept)
      ::utimensat(AT_FDCWD, path_.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);  // for keep_small()
    return kept;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void BaselineCache::write(const net::Evaluation& evaluation) const {
  if (path_.empty()) return;
  try {
    fs::create_directories(folder_);
    write_atomically(path_, {text_of(evaluation, key_)});
    remove_leftovers(folder_);
    keep_small(folder_);
  } catch (const fs::filesystem_error&) {
  } catch (const Error&) {
  }
}

}  // namespace numemu::experiments
