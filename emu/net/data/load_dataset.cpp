// From the name on the command line to the loader.
#include "emu/net/data/load_dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {
namespace {

// torchvision's, and those of CIFAR-10's training images.
constexpr double kImagenetMean[] = {0.485, 0.456, 0.406},
                 kImagenetDeviation[] = {0.229, 0.224, 0.225},
                 kCifarMean[] = {0.4914, 0.4822, 0.4465},
                 kCifarDeviation[] = {0.2470, 0.2435, 0.2616};

template <class T>
std::optional<T> parse(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Lower-case words; shorter ones after a comma may be part of a path.
bool looks_like_key(std::string_view key, bool first) {
  constexpr std::size_t kShortest = 3;
  return key.size() >= (first ? 1 : kShortest) && std::ranges::all_of(key, [](char c) {
           return (c >= 'a' && c <= 'z') || c == '-' || c == '_';
         });
}

}  // namespace

SourceOptions::SourceOptions(std::string kind, std::string_view text, std::vector<std::string> keys)
    : kind_(std::move(kind)) {
  std::string* value = &path_;
  const std::string* misspelt = nullptr;  // the path or value that took something like an option
  std::string unknown;
  for (bool first = true; first || !text.empty(); first = false) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view piece = text.substr(0, comma);
    const std::size_t equals = piece.find('=');
    const std::string key(piece.substr(0, std::min(equals, piece.size())));
    if (equals != std::string_view::npos && std::count(keys.begin(), keys.end(), key) != 0) {
      if (has(key)) throw Error(fmt::format("data set {}: {} is given twice", kind_, key));
      value = &values_[key];
      *value = piece.substr(equals + 1);
    } else {
      if (!first) *value += ',';
      *value += piece;
      if (equals != std::string_view::npos && misspelt == nullptr && looks_like_key(key, first)) {
        misspelt = value;
        unknown = key;
      }
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  if (misspelt != nullptr && !std::filesystem::exists(*misspelt))
    throw Error(fmt::format("data set {}: {}", kind_, unknown_name("option", unknown, keys)));
  for (const auto& [key, own] : values_) {
    if (own.empty()) fail(key, "a value");
  }
}

std::string SourceOptions::text(const std::string& key, std::string otherwise) const {
  const auto at = values_.find(key);
  return at == values_.end() ? otherwise : at->second;
}

std::int64_t SourceOptions::whole(const std::string& key, std::int64_t otherwise, std::int64_t low,
                                  std::int64_t high) const {
  if (!has(key)) return otherwise;
  const std::optional<std::int64_t> value = parse<std::int64_t>(text(key));
  if (!value || *value < low || *value > high)
    fail(key, fmt::format("a whole number from {} to {}", low, high));
  return *value;
}

std::vector<double> SourceOptions::numbers(const std::string& key) const {
  std::vector<double> values;
  const std::string all = text(key);
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('/', at), all.size());
    const std::optional<double> value = parse<double>(std::string_view(all).substr(at, end - at));
    if (!value || !std::isfinite(*value)) fail(key, "numbers separated by '/'");
    values.push_back(*value);
    at = end + 1;
  }
  return values;
}

std::string SourceOptions::choice(const std::string& key,
                                  const std::vector<std::string>& choices) const {
  const std::string value = text(key, choices.front());
  if (std::count(choices.begin(), choices.end(), value) == 0)
    fail(key, fmt::format("one of {}", joined(choices, ", ")));
  return value;
}

void SourceOptions::fail(const std::string& key, const std::string& expected) const {
  throw Error(
      fmt::format("data set {}: {}: expected {}, found '{}'", kind_, key, expected, text(key)));
}

std::optional<Normalisation> normalisation_of(const SourceOptions& options, std::int64_t channels) {
  Normalisation result{options.numbers("mean"), options.numbers("deviation")};
  const bool numbers = options.has("mean") || options.has("deviation");
  if (!options.has("normalize") && !numbers) return std::nullopt;
  if (options.has("normalize")) {
    const std::string preset = options.choice("normalize", {"imagenet", "cifar", "none"});
    if (numbers) options.fail("normalize", "either a preset or mean and deviation");
    const auto every = static_cast<std::size_t>(channels);
    if (preset == "none") return Normalisation{std::vector(every, 0.0), std::vector(every, 1.0)};
    const bool cifar = preset == "cifar";
    const double *mean = cifar ? kCifarMean : kImagenetMean,
                 *deviation = cifar ? kCifarDeviation : kImagenetDeviation;
    if (channels != 3)
      options.fail("normalize", fmt::format("mean and deviation for {} channels", channels));
    return Normalisation{{mean, mean + 3}, {deviation, deviation + 3}};
  }
  for (const char* key : {"mean", "deviation"}) {
    std::vector<double>& values = key[0] == 'm' ? result.mean : result.deviation;
    if (values.size() == 1) values.resize(static_cast<std::size_t>(channels), values[0]);
    if (static_cast<std::int64_t>(values.size()) != channels)
      options.fail(key, fmt::format("one number or {}, one for each channel", channels));
  }
  for (const double deviation : result.deviation) {
    if (!(deviation > 0)) options.fail("deviation", "numbers above 0");
  }
  return result;
}

namespace {

const std::vector<std::string> kDataKinds = {"glyphs", "mnist", "cifar10", "cifar100", "text",
                                             "clicks", "chain", "npy",     "images",   "tokens"};

std::string data_kind_of(std::string_view name) {
  return std::string(name.substr(0, name.find(':')));
}

}  // namespace

void check_dataset_name(std::string_view name) {
  find_named("data set", data_kind_of(name), kDataKinds);
}

Dataset load_dataset(std::string_view name, const std::string& cache_folder) {
  const std::size_t colon = name.find(':');
  const std::string kind = data_kind_of(name);
  const std::string place(colon == std::string_view::npos ? "" : name.substr(colon + 1));
  const auto need = [&](const char* what) {
    if (place.empty())
      throw Error("data set '" + std::string(name) + "': expected " + kind + ":" + what);
  };
  const auto need_nothing = [&] {
    if (colon != std::string_view::npos)
      throw Error("data set '" + std::string(name) + "': expected " + kind +
                  " alone, it needs no folder");
  };
  if (kind == "glyphs") {
    need_nothing();
    return load_glyphs(cache_folder);
  }
  if (kind == "mnist") {
    need("DIR with the folder of its files");
    return load_mnist(place);
  }
  if (kind == "cifar10") {
    need("DIR with the folder of its files");
    return load_cifar10(place);
  }
  if (kind == "cifar100") {
    need("DIR with the folder of its files");
    return load_cifar100(place);
  }
  if (kind == "npy") {
    need("DIR, FILE.npz or x=FILE,y=FILE");
    return load_arrays(place);
  }
  if (kind == "images") {
    need("DIR with a folder for each class");
    return load_image_folder(place, cache_folder);
  }
  if (kind == "tokens") {
    need("FILE with the tokens");
    return load_tokens(place);
  }
  if (kind == "text") {
    need("FILE with the text");
    return load_text(place);
  }
  if (kind == "clicks") {
    need_nothing();
    return load_clicks();
  }
  if (kind == "chain") {
    need_nothing();
    return load_chain();
  }
  throw Error(unknown_name("data set", kind, kDataKinds));
}

}  // namespace numemu::net
