// Trained predictors as the mask of a recipe's role vector: "zap(FILE,threshold=0.1)".
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace numemu::policies {

struct ZapMask {
  std::string file;                ///< of save_zap_network(), from the working folder
  std::optional<float> threshold;  ///< of every layer; nothing: those of the file
  std::string digest;              ///< first 16 hexadecimal digits of the file's SHA-256, or ""
};

/// Whether the text is meant to be one.
bool is_zap_mask(std::string_view text);
/// "zap(FILE)" with threshold= and sha256=. Throws Error saying what was expected; reads no file.
ZapMask parse_zap_mask(std::string_view text);
std::string to_string(const ZapMask&);
/// With the digest of the file as it is now. Throws Error where the file cannot be read or has
/// another digest than the mask says.
ZapMask with_digest(ZapMask);

}  // namespace numemu::policies
