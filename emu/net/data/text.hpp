// A text as windows of characters, whose targets are the next characters: of a file, or of a Markov
// chain.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/samples.hpp"

namespace numemu::net {

/// The vocabulary is the sorted distinct bytes of the text. By position the first 90 % are
/// training, the next 5 % validation, the rest test, each cut into windows that do not overlap; the
/// first 64 windows of training are calibration.
class TextSamples final : public Samples {
 public:
  static constexpr std::int64_t kContext = 64;  ///< what text:FILE uses
  static constexpr std::int64_t kCalibration = 64;

  /// Throws Error naming the text when a split has no whole window and its next character, or
  /// context is not positive, or a byte is not of the vocabulary, if one is given. The digest is of
  /// the text and the context, and of a vocabulary that is given. With `all_test` every window is
  /// of the test.
  TextSamples(const std::string& name, std::vector<std::uint8_t> text,
              std::int64_t context = kContext, const std::string& vocabulary = "",
              bool all_test = false);

  /// x [context]: numbers of characters; targets [context]: of the characters after each.
  void read(Part, std::int64_t id, const AugmentDraw*, float* x, TargetSpan) const override;

  /// The characters by number.
  const std::string& vocabulary() const { return vocabulary_; }

 private:
  std::int64_t context_;
  std::int64_t validation_start_ = 0, test_start_ = 0;
  std::string vocabulary_;
  std::vector<std::uint8_t> tokens_;
};

namespace chain {

inline constexpr std::int64_t kCharacters = 1 << 20;
/// Bits per character that no model of the text can go below: each two characters are followed by
/// one of four, with probabilities 1/2, 1/4, 1/8, 1/8 (Shannon 1948, section 7).
inline constexpr double kEntropyRate = 1.75;

/// The text, of the letters a to z and the space. Character t is a function of the two before it
/// and of draw t.
std::vector<std::uint8_t> generate();

}  // namespace chain

}  // namespace numemu::net
