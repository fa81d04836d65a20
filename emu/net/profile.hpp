// Profiles: nested sections of a run, timed by the clock of the caller.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
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

/// Times of the sections of a run (run_context.hpp), which end before it.
class Profile {
 public:
  /// Sections are timed by `clock` (seconds from any origin; callable from any thread).
  explicit Profile(double (*clock)()) : clock_(clock) {}
  /// The longest first.
  std::vector<ProfileRow> rows() const;

 private:
  friend class Section;
  struct Total {
    std::int64_t calls = 0;
    double seconds = 0, macs = 0;
  };
  double (*clock_)();
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, std::string, SectionKind>, Total> totals_;
};

/// Times its own lifetime on this thread for the profile of the thread's run; without one it costs
/// a few loads. The names must outlive it.
class Section {
 public:
  Section(SectionKind, std::string_view layer, std::string_view what, double macs = 0);
  ~Section();
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

 private:
  Profile* profile_;
};

}  // namespace numemu::net
