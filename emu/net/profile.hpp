// Profiles: nested sections of a run, timed by the clock of the caller.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace numemu::net {

/// What a section does. gemm is time inside matrix units; quantize is what prepares their operands
/// and scales their results; mask is what prunes them; forward and backward are the rest of an
/// operator; update is what changes weights; data is all else: samples, files, imports, calibration
/// and predictions.
enum class SectionKind : std::uint8_t { forward, backward, quantize, gemm, data, update, mask };
std::string_view to_string(SectionKind);

/// Time of one kind of section in one layer, over all threads.
struct ProfileRow {
  std::string layer;  ///< a node or GEMM layer; "" for the run's own
  std::string what;   ///< the operator ("conv2d"), or the GEMM ("fprop")
  SectionKind kind = SectionKind::forward;
  std::int64_t calls = 0;
  double seconds = 0;  ///< without sections inside it
  double macs = 0;     ///< multiply-adds of gemm sections
};

/// From now on sections are timed by `clock` (seconds from any origin; callable from any thread).
/// At most one profile at a time; null ends it. Nothing is timed by default: a section then costs
/// one load.
void start_profile(double (*clock)());
/// Ends the profile and returns its rows, the longest first. Every thread must have left its
/// sections.
std::vector<ProfileRow> end_profile();

/// Times its own lifetime on this thread. The names must outlive it.
class Section {
 public:
  Section(SectionKind, std::string_view layer, std::string_view what, double macs = 0);
  ~Section();
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

 private:
  bool timed_;
};

}  // namespace numemu::net
