#include "policies/zap/zap_mask.hpp"

#include <fmt/format.h>

#include "formats/call_text.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"

namespace numemu::policies {
namespace {

constexpr std::size_t kDigits = 16;

[[noreturn]] void fail(std::string_view text) {
  throw Error(fmt::format(
      "mask '{}': expected zap(FILE) with the options threshold=NUMBER and sha256=DIGITS", text));
}

}  // namespace

bool is_zap_mask(std::string_view text) { return parse_call(text).name == "zap"; }

ZapMask parse_zap_mask(std::string_view text) {
  const CallText call = parse_call(text);
  if (call.name != "zap" || call.arguments.empty() || call.arguments[0].empty()) fail(text);
  ZapMask mask{call.arguments[0], {}, ""};
  for (std::size_t i = 1; i < call.arguments.size(); ++i) {
    const std::string& option = call.arguments[i];
    const std::size_t equals = option.find('=');
    const std::string key = option.substr(0, equals);
    if (equals == std::string::npos) fail(text);
    const std::string value = option.substr(equals + 1);
    if (key == "threshold" && !mask.threshold) {
      const auto number = number_argument(value);
      if (!number) fail(text);
      mask.threshold = static_cast<float>(*number);
    } else if (key == "sha256" && mask.digest.empty() && value.size() == kDigits) {
      mask.digest = value;
    } else {
      fail(text);
    }
  }
  return mask;
}

std::string to_string(const ZapMask& mask) {
  std::string text = "zap(" + mask.file;
  if (mask.threshold) text += fmt::format(",threshold={}", *mask.threshold);
  if (!mask.digest.empty()) text += ",sha256=" + mask.digest;
  return text + ")";
}

ZapMask with_digest(ZapMask mask) {
  const std::string found = sha256_hex(read_text(mask.file)).substr(0, kDigits);
  if (!mask.digest.empty() && mask.digest != found) {
    throw Error(fmt::format("{}: expected predictors with the digest {}, found {}", mask.file,
                            mask.digest, found));
  }
  mask.digest = found;
  return mask;
}

}  // namespace numemu::policies
