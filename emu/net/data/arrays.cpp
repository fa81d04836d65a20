// npy: inputs x and targets y in .npy files or one .npz; the test samples by files or by count.
// Cold: a negligible share of any run (docs/build.md).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "emu/net/data/images.hpp"
#include "emu/net/data/npz.hpp"
#include "emu/net/data/source_options.hpp"
#include "emu/net/data/sources.hpp"
#include "emu/net/data/stored_type.hpp"
#include "emu/net/memory.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/npy.hpp"

namespace numemu::net {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostClasses = std::int64_t{1} << 24, kMostSamples = std::int64_t{1} << 40,
                       kCalibration = 512;

/// One pair of arrays, sample by sample; images NHWC.
struct Side {
  std::int64_t count = 0;
  std::vector<std::uint8_t> bytes;  ///< x of uint8
  std::vector<float> numbers;       ///< x of other types
  Targets targets;
};

/// An array and where it came from.
struct Source {
  std::string where;
  Array array;
};

/// An element of an array of integers, whatever their type: no float32 holds all of them.
__extension__ using Whole = __int128;
Whole whole_at(const Array& a, std::size_t i) {
  return with_element_type(
      a.type, [&](auto type) { return static_cast<Whole>(a.as<decltype(type)>()[i]); });
}

/// Rounded once, to nearest even.
std::vector<float> floats(const Source& source) {
  const Array& a = source.array;
  if (a.type == ArrayType::float16) {
    std::vector<float> values(static_cast<std::size_t>(a.elements()));
    load(stored_type(StorageType::f16), {a.as<char>(), static_cast<std::size_t>(a.data.size())},
         values);
    return values;
  }
  return with_element_type(a.type, [&](auto type) {
    const auto* const x = a.as<decltype(type)>();
    return std::vector<float>(x, x + a.elements());
  });
}

Array array_of(const std::string& file) {
  std::error_code ignored;
  if (const auto size = fs::file_size(file, ignored); !ignored)
    require_beside_held(static_cast<std::int64_t>(size), file);
  return read_npy(file);
}

bool is_real(ArrayType type) {
  return type == ArrayType::float16 || type == ArrayType::float32 || type == ArrayType::float64;
}

/// Planes of each sample side by side become channels of each pixel.
template <class T>
void interleave(std::vector<T>& x, const ArrayShape& nchw) {
  std::vector<T> out(x.size());
  const std::int64_t channels = nchw[1], pixels = nchw[2] * nchw[3];
  for (std::int64_t n = 0; n < nchw[0]; ++n) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t p = 0; p < pixels; ++p)
        out[(n * pixels + p) * channels + c] = x[(n * channels + c) * pixels + p];
    }
  }
  x = std::move(out);
}

std::string digest_of(const void* data, std::size_t size) {
  return sha256_hex({static_cast<const char*>(data), size});
}

class ArraySamples final : public Samples {
 public:
  explicit ArraySamples(SourceOptions options) : options_(std::move(options)) {
    facts_.target = TargetKind::none;
    find_sources();
    nchw_ = options_.choice("layout", {"nchw", "nhwc", "none"}) == "nchw";
    images_ = options_.text("layout") != "none";
    load_side(sides_[0], "x", "y");
    load_side(sides_[1], "test-x", "test-y");
    split();
    finish();
  }

  void read(Part part, std::int64_t id, const AugmentDraw* draw, float* x,
            TargetSpan targets) const override {
    const Side& side = part == Part::test && own_test_ ? sides_[1] : sides_[0];
    if (part == Part::validation) id += facts_.sizes.train;
    if (part == Part::test && !own_test_) id += facts_.sizes.train + facts_.sizes.validation;
    const std::int64_t size = element_count(facts_.input_shape),
                       each = element_count(facts_.target_shape);
    if (!side.bytes.empty()) {
      write_image(side.bytes.data() + id * size, image_, table_, draw, id, x);
    } else if (draw != nullptr) {
      throw Error("augmentation: expected images of bytes, data set npy has other numbers");
    } else {
      std::copy_n(side.numbers.begin() + id * size, size, x);
    }
    if (targets.classes != nullptr)
      std::copy_n(side.targets.classes.begin() + id * each, each, targets.classes);
    if (targets.values != nullptr)
      std::copy_n(side.targets.values.begin() + id * each, each, targets.values);
  }

 private:
  /// The arrays by the keys x, y, test-x and test-y.
  void find_sources() {
    const std::string& path = options_.path();
    if (path.ends_with(".npz")) {
      for (auto& [name, array] : read_npz_arrays(path)) {
        std::string key = name;
        std::replace(key.begin(), key.end(), '_', '-');
        if (key == "x-test" || key == "y-test") key = std::string("test-") + key[0];
        sources_.insert_or_assign(key, Source{path + ": " + name, std::move(array)});
      }
    } else if (!path.empty()) {
      if (!fs::is_directory(path))
        throw Error(path + ": expected a folder with x.npy and y.npy, or a .npz file");
      for (const auto& [key, name] :
           {std::pair{"x", "x"}, {"y", "y"}, {"test-x", "x_test"}, {"test-y", "y_test"}}) {
        const std::string file = fmt::format("{}/{}.npy", path, name);
        if (fs::exists(file)) sources_.insert_or_assign(key, Source{file, array_of(file)});
      }
    }
    for (const char* key : {"x", "y", "test-x", "test-y"}) {
      const std::string file = options_.text(key);
      if (!file.empty()) sources_.insert_or_assign(key, Source{file, array_of(file)});
    }
    if (!sources_.contains("x") && !sources_.contains("test-x"))
      throw Error("data set npy: expected npy:DIR, npy:FILE.npz or npy:x=FILE,y=FILE");
    own_test_ = sources_.contains("test-x");
  }

  void load_side(Side& side, const std::string& x_key, const std::string& y_key) {
    if (!sources_.contains(x_key)) return;
    const Source& x = sources_.at(x_key);
    const ArrayShape& shape = x.array.shape;
    if (shape.size() < 2 || shape[0] < 1 || x.array.elements() == 0)
      throw Error(x.where + ": expected [samples, ...], found " + shape_text(shape));
    side.count = shape[0];
    Shape sample(shape.begin() + 1, shape.end());
    const bool planes = shape.size() == 4 && images_ && nchw_;
    if (planes) sample = {shape[2], shape[3], shape[1]};
    if (facts_.input_shape.empty()) {
      facts_.input_shape = sample;
      facts_.kind = shape.size() == 4 && images_ ? DataKind::images : DataKind::arrays;
      type_ = x.array.type;
      note_ = fmt::format("{} {}{}", shape_text(shape), to_string(type_),
                          facts_.kind != DataKind::images ? ""
                          : planes                        ? " as NCHW images"
                                                          : " as NHWC images");
    }
    if (sample != facts_.input_shape || x.array.type != type_) {
      throw Error(fmt::format("{}: expected samples of {} {}, as the others, found {} {}", x.where,
                              to_string(facts_.input_shape), to_string(type_), to_string(sample),
                              to_string(x.array.type)));
    }
    if (type_ == ArrayType::uint8) {
      if (table_.empty()) make_table(x);
      const auto* bytes = x.array.as<std::uint8_t>();
      side.bytes.assign(bytes, bytes + x.array.elements());
      if (planes) interleave(side.bytes, shape);
    } else {
      for (const char* key : {"normalize", "mean", "deviation"}) {
        if (options_.has(key)) options_.fail(key, "x of uint8, whose bytes it turns into numbers");
      }
      side.numbers = floats(x);
      if (planes) interleave(side.numbers, shape);
    }
    load_targets(side, y_key);
  }

  void make_table(const Source& x) {
    const std::int64_t channels = facts_.input_shape.back();
    image_ = {1, element_count(facts_.input_shape) / channels, channels};
    if (facts_.kind == DataKind::images) image_ = facts_.input_shape;
    const std::optional<Normalisation> n = normalisation_of(options_, channels);
    if (!n)
      throw Error(x.where + ": uint8: expected normalize=imagenet|cifar|none or mean=,deviation=");
    table_ = normalisation_table(n->mean, n->deviation);
  }

  void load_targets(Side& side, const std::string& key) {
    if (!sources_.contains(key)) {
      if (&side == &sides_[1] && facts_.target != TargetKind::none)
        throw Error("data set npy: expected test-y, as there is y");
      if (&side == &sides_[1] || !sources_.contains("test-y")) return;
      unlabelled_ = true;  // samples for calibration alone
      return;
    }
    const Source& y = sources_.at(key);
    const ArrayShape& shape = y.array.shape;
    if (shape.empty() || shape[0] != side.count) {
      throw Error(fmt::format("{}: expected [{}, ...], one entry for each sample of x, found {}",
                              y.where, side.count, shape_text(shape)));
    }
    if (y.array.elements() == 0) throw Error(y.where + ": expected targets, found none");
    const bool values = is_real(y.array.type);
    Shape sample(shape.begin() + 1, shape.end());
    if (!values && sample == Shape{1}) sample = {};
    const bool planes = values && shape.size() == 4 && images_ && nchw_;
    if (planes) sample = {shape[2], shape[3], shape[1]};
    const TargetKind kind = values ? TargetKind::values : TargetKind::classes;
    if (facts_.target == TargetKind::none) {
      facts_.target = kind;
      facts_.target_shape = sample;
      y_note_ = fmt::format("{} {}", shape_text(shape), to_string(y.array.type));
    }
    if (kind != facts_.target || sample != facts_.target_shape)
      throw Error(y.where + ": expected targets of the same type and shape as the others");
    if (values) {
      side.targets.values = floats(y);
      const auto bad =
          std::ranges::find_if_not(side.targets.values, [](float v) { return std::isfinite(v); });
      if (bad != side.targets.values.end())
        throw Error(fmt::format("{}: element {}: expected a finite number as a target, found {}",
                                y.where, bad - side.targets.values.begin(), *bad));
      if (planes) interleave(side.targets.values, shape);
    } else {
      load_classes(side, y);
    }
  }

  void load_classes(Side& side, const Source& y) {
    const std::int64_t most = options_.whole("classes", kMostClasses, 1, kMostClasses);
    const std::int64_t ignored = options_.whole("ignore", -1, INT32_MIN, INT32_MAX);
    const auto count = static_cast<std::size_t>(y.array.elements());
    side.targets.classes.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const Whole v = whole_at(y.array, i);
      if (options_.has("ignore") && v == ignored) {
        side.targets.classes.push_back(kNoClass);
        continue;
      }
      if (v < 0 || v >= most)
        throw Error(fmt::format("{}: element {}: expected a class from 0 to {}, found {}", y.where,
                                i, most - 1, v));
      side.targets.classes.push_back(static_cast<std::int32_t>(v));
      facts_.classes = std::max<std::int64_t>(facts_.classes, side.targets.classes.back() + 1);
    }
    if (options_.has("classes")) facts_.classes = most;
  }

  void split() {
    const std::int64_t all = sides_[0].count;
    if (own_test_ && options_.has("test"))
      options_.fail("test", "either a number of samples or arrays for the test");
    SplitSizes& sizes = facts_.sizes;
    sizes.test = own_test_ ? sides_[1].count : options_.whole("test", all, 1, kMostSamples);
    sizes.validation = options_.whole("validation", 0, 0, kMostSamples);
    sizes.train = all - sizes.validation - (own_test_ ? 0 : sizes.test);
    if (sizes.train < 0) {
      throw Error(
          fmt::format("data set npy: expected at most {} samples for test and validation, "
                      "found {}",
                      all, all - sizes.train));
    }
    sizes.calibration =
        std::min(sizes.train, options_.whole("calibration", kCalibration, 1, kMostSamples));
    if (unlabelled_ && sizes.validation > 0) options_.fail("validation", "y for the samples of x");
  }

  void finish() {
    facts_.noun = facts_.kind == DataKind::images ? "images" : "samples";
    std::string text = fmt::format(
        "npy {} {} {} {} {} {} {}\n", to_string(facts_.input_shape), to_string(facts_.target_shape),
        facts_.classes, facts_.sizes.train, facts_.sizes.validation, facts_.sizes.calibration,
        digest_of(table_.data(), table_.size() * sizeof(float)));
    for (Side& side : sides_) {
      if (unlabelled_ && &side == &sides_[0]) {
        const auto n = static_cast<std::size_t>(side.count * element_count(facts_.target_shape));
        if (facts_.target == TargetKind::classes) side.targets.classes.assign(n, kNoClass);
        if (facts_.target == TargetKind::values) side.targets.values.assign(n, 0);
      }
      text += digest_of(side.bytes.data(), side.bytes.size());
      text += digest_of(side.numbers.data(), side.numbers.size() * sizeof(float));
      text += digest_of(side.targets.classes.data(), side.targets.classes.size() * 4);
      text += digest_of(side.targets.values.data(), side.targets.values.size() * sizeof(float));
    }
    facts_.digest = sha256_hex(text).substr(0, 16);
    const std::string y = facts_.target == TargetKind::none ? "none"
                          : facts_.target == TargetKind::classes
                              ? fmt::format("{}, {} classes", y_note_, facts_.classes)
                              : y_note_ + " values";
    facts_.note = fmt::format("npy: x {}; y {}; {} training, {} validation, {} test samples", note_,
                              y, facts_.sizes.train, facts_.sizes.validation, facts_.sizes.test);
    sources_.clear();
  }

  SourceOptions options_;
  std::map<std::string, Source> sources_;
  bool nchw_ = true, images_ = true, own_test_ = false, unlabelled_ = false;
  ArrayType type_ = ArrayType::float32;
  std::string note_, y_note_;
  Side sides_[2];
  Shape image_;  ///< of x as bytes: [height, width, channels], [1, all before the last, last] else
  std::vector<float> table_;
};

}  // namespace

Dataset load_arrays(const std::string& place) {
  SourceOptions options("npy", place,
                        {"x", "y", "test-x", "test-y", "layout", "normalize", "mean", "deviation",
                         "classes", "ignore", "test", "validation", "calibration"});
  return Dataset("npy", std::make_shared<ArraySamples>(std::move(options)));
}

}  // namespace numemu::net
