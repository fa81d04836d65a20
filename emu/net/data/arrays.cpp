// npy: inputs x and targets y in .npy files or one .npz; the test samples by files or by count.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "emu/net/data/images.hpp"
#include "emu/net/data/load_dataset.hpp"
#include "emu/net/data/npz.hpp"
#include "emu/net/data/stored_type.hpp"
#include "emu/net/memory.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/npy.hpp"

namespace numemu::net {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostClasses = std::int64_t{1} << 24, kMostSamples = std::int64_t{1} << 40,
                       kCalibration = 512;
constexpr std::size_t kByteValues = 256;

/// Inputs and targets, sample by sample; images NHWC.
struct Side {
  std::int64_t count = 0;
  std::vector<std::uint8_t> bytes;  ///< x of uint8, where it is the one input
  std::vector<float> numbers;       ///< other inputs, packed
  Targets targets;
};

/// An array and where it came from.
struct Source {
  std::string where;
  Array array;
};
/// By the names of inputs or outputs; "" is the one input or the first output.
using Sources = std::map<std::string, Source>;

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

void add_digests(const Targets& targets, std::string& text) {
  text += digest_of(targets.classes.data(), targets.classes.size() * 4);
  text += digest_of(targets.values.data(), targets.values.size() * sizeof(float));
}

/// Those of sample `id`, where they are asked for.
void copy_targets(const TargetFacts& facts, const Targets& stored, std::int64_t id, TargetSpan to) {
  const std::int64_t each = element_count(facts.target_shape);
  if (to.classes != nullptr) std::copy_n(stored.classes.begin() + id * each, each, to.classes);
  if (to.values != nullptr) std::copy_n(stored.values.begin() + id * each, each, to.values);
}

/// Of samples that calibrate alone.
void fill_unlabelled(const TargetFacts& facts, std::int64_t samples, Targets& targets) {
  const auto n = static_cast<std::size_t>(samples * element_count(facts.target_shape));
  if (facts.target == TargetKind::classes) targets.classes.assign(n, kNoClass);
  if (facts.target == TargetKind::values) targets.values.assign(n, 0);
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
    const std::int64_t size = element_count(facts_.input_shape);
    if (!side.bytes.empty()) {
      write_image(side.bytes.data() + id * size, image_, table_, draw, id, x);
    } else if (draw != nullptr) {
      throw Error("augmentation: expected images of bytes, data set npy has other numbers");
    } else {
      std::copy_n(side.numbers.begin() + id * size, size, x);
    }
    copy_targets(facts_, side.targets, id, targets);
    for (std::size_t o = 0; o < facts_.further.size() && targets.further != nullptr; ++o)
      copy_targets(facts_.further[o], side.targets.further[o], id, targets.further[o]);
  }

 private:
  /// The arrays by the keys x, y, test-x and test-y, and by input or output.
  void find_sources() {
    const std::string& path = options_.path();
    if (path.ends_with(".npz")) {
      find_entries(path);
    } else if (!path.empty()) {
      if (!fs::is_directory(path))
        throw Error(path + ": expected a folder with x.npy and y.npy, or a .npz file");
      for (const auto& [key, name] :
           {std::pair{"x", "x"}, {"y", "y"}, {"test-x", "x_test"}, {"test-y", "y_test"}}) {
        const std::string file = fmt::format("{}/{}.npy", path, name);
        if (fs::exists(file)) sources_[key].insert_or_assign("", Source{file, array_of(file)});
      }
    }
    for (const char* key : {"x", "y", "test-x", "test-y"}) {
      const std::string file = options_.text(key);
      if (!file.empty()) sources_[key].insert_or_assign("", Source{file, array_of(file)});
    }
    if (sources_["x"].empty() && sources_["test-x"].empty())
      throw Error("data set npy: expected npy:DIR, npy:FILE.npz or npy:x=FILE,y=FILE");
    own_test_ = !sources_["test-x"].empty();
  }

  /// "x", "x/INPUT", "y/OUTPUT", the same with "_test", and without an x inputs by their names.
  void find_entries(const std::string& path) {
    Sources others;
    for (auto& [name, array] : read_npz_arrays(path)) {
      const std::size_t slash = std::min(name.find('/'), name.size());
      std::string key = name.substr(0, slash);
      std::replace(key.begin(), key.end(), '_', '-');
      if (key == "x-test" || key == "y-test") key = std::string("test-") + key[0];
      const bool known = key == "x" || key == "y" || key == "test-x" || key == "test-y";
      const std::string part = known && slash < name.size() ? name.substr(slash + 1) : "";
      Source source{path + ": " + name, std::move(array)};
      (known ? sources_[key] : others).insert_or_assign(known ? part : name, std::move(source));
    }
    if (!sources_["x"].contains("") && !sources_["test-x"].contains(""))
      sources_["x"].merge(others);
  }

  void load_side(Side& side, const std::string& x_key, const std::string& y_key) {
    const Sources& inputs = sources_[x_key];
    if (inputs.empty()) return;
    if (!inputs.contains("")) {
      load_inputs(side, inputs);
    } else if (inputs.size() == 1) {
      load_input(side, inputs.at(""));
    } else {
      throw Error(inputs.at("").where + ": expected one input, or all of them as x/NAME");
    }
    load_targets(side, y_key);
  }

  /// [samples, ...] and what a sample is: of planes pixels with channels.
  Shape sample_of(const Source& x) const {
    const ArrayShape& shape = x.array.shape;
    if (shape.empty() || shape[0] < 1 || x.array.elements() == 0)
      throw Error(x.where + ": expected [samples, ...], found " + shape_text(shape));
    return has_planes(shape) ? Shape{shape[2], shape[3], shape[1]}
                             : Shape(shape.begin() + 1, shape.end());
  }
  bool has_planes(const ArrayShape& shape) const { return shape.size() == 4 && images_ && nchw_; }

  void require_no_pixel_options() const {
    for (const char* key : {"normalize", "mean", "deviation"}) {
      if (options_.has(key)) options_.fail(key, "x of uint8, whose bytes it turns into numbers");
    }
  }

  /// Several inputs, or one with a name.
  void load_inputs(Side& side, const Sources& inputs) {
    std::vector<NamedShape> names;
    std::vector<std::vector<float>> numbers;
    std::vector<std::string> notes;
    bool bytes = false;
    for (const auto& [name, x] : inputs) {
      Shape sample = sample_of(x);
      if (names.empty()) side.count = x.array.shape[0];
      if (x.array.shape[0] != side.count)
        throw Error(fmt::format("{}: expected {} samples, as the other inputs have, found {}",
                                x.where, side.count, x.array.shape[0]));
      std::vector<float>& values = numbers.emplace_back(floats(x));
      if (has_planes(x.array.shape)) interleave(values, x.array.shape);
      if (x.array.type == ArrayType::uint8) {
        bytes = true;
        const std::int64_t channels = sample.empty() ? 1 : sample.back();
        const std::vector<float> table = table_of(x, channels);
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = table[i % static_cast<std::size_t>(channels) * kByteValues +
                            static_cast<std::size_t>(values[i])];
      }
      names.push_back({name, std::move(sample), images_ && x.array.shape.size() == 4});
      notes.push_back(
          fmt::format("{} {} {}", name, shape_text(x.array.shape), to_string(x.array.type)));
    }
    if (!bytes) require_no_pixel_options();
    const auto same = [](const NamedShape& a, const NamedShape& b) {
      return a.name == b.name && a.shape == b.shape;
    };
    if (facts_.inputs.empty() && facts_.input_shape.empty()) {
      facts_.inputs = names;
      facts_.kind = DataKind::arrays;
      facts_.input_shape = names.front().shape;
      if (names.size() == 1 && names.front().shape.size() == 3 && images_)
        facts_.kind = DataKind::images;
      if (names.size() > 1) {
        facts_.input_shape = {0};
        for (const NamedShape& input : names) facts_.input_shape[0] += element_count(input.shape);
      }
      note_ = joined(notes, ", ");
    }
    if (!std::ranges::equal(names, facts_.inputs, same))
      throw Error(inputs.begin()->second.where +
                  ": expected test samples of the same inputs as the others");
    side.numbers = std::move(numbers.front());
    if (numbers.size() > 1) pack(side, numbers);
  }

  /// The first of them is in side.numbers.
  void pack(Side& side, std::vector<std::vector<float>>& numbers) const {
    numbers.front() = std::move(side.numbers);
    const std::int64_t whole = facts_.input_shape[0];
    side.numbers.resize(static_cast<std::size_t>(side.count * whole));
    std::int64_t from = 0;
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      const std::int64_t each = element_count(facts_.inputs[k].shape);
      for (std::int64_t i = 0; i < side.count; ++i)
        std::copy_n(numbers[k].begin() + i * each, each, side.numbers.begin() + i * whole + from);
      from += each;
      std::vector<float>().swap(numbers[k]);
    }
  }

  void load_input(Side& side, const Source& x) {
    const ArrayShape& shape = x.array.shape;
    if (shape.size() < 2)
      throw Error(x.where + ": expected [samples, ...], found " + shape_text(shape));
    const Shape sample = sample_of(x);
    side.count = shape[0];
    const bool planes = has_planes(shape);
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
      require_no_pixel_options();
      side.numbers = floats(x);
      if (planes) interleave(side.numbers, shape);
    }
  }

  std::vector<float> table_of(const Source& x, std::int64_t channels) const {
    const std::optional<Normalisation> n = normalisation_of(options_, channels);
    if (!n)
      throw Error(x.where + ": uint8: expected normalize=imagenet|cifar|none or mean=,deviation=");
    return normalisation_table(n->mean, n->deviation);
  }

  void make_table(const Source& x) {
    const std::int64_t channels = facts_.input_shape.back();
    image_ = {1, element_count(facts_.input_shape) / channels, channels};
    if (facts_.kind == DataKind::images) image_ = facts_.input_shape;
    table_ = table_of(x, channels);
  }

  void load_targets(Side& side, const std::string& key) {
    const Sources& outputs = sources_[key];
    const bool known = facts_.target != TargetKind::none;
    if (outputs.empty()) {
      if (&side == &sides_[1] && known) throw Error("data set npy: expected test-y, as there is y");
      if (&side == &sides_[1] || sources_["test-y"].empty()) return;
      unlabelled_ = true;  // samples for calibration alone
      return;
    }
    if (!known) facts_.further.resize(outputs.size() - 1);
    if (outputs.size() != 1 + facts_.further.size())
      throw Error(outputs.begin()->second.where +
                  ": expected targets of the same outputs as the others");
    side.targets.further.resize(facts_.further.size());
    std::size_t o = 0;
    for (const auto& [output, y] : outputs) {
      TargetFacts facts = o == 0 ? facts_ : facts_.further[o - 1];
      if (!known) facts = {.output = output, .target = TargetKind::none};
      load_output(facts, o == 0 ? side.targets : side.targets.further[o - 1], side.count, output,
                  y);
      (o == 0 ? static_cast<TargetFacts&>(facts_) : facts_.further[o - 1]) = facts;
      ++o;
    }
  }

  void load_output(TargetFacts& facts, Targets& targets, std::int64_t count,
                   const std::string& output, const Source& y) {
    const ArrayShape& shape = y.array.shape;
    if (shape.empty() || shape[0] != count) {
      throw Error(fmt::format("{}: expected [{}, ...], one entry for each sample of x, found {}",
                              y.where, count, shape_text(shape)));
    }
    if (y.array.elements() == 0) throw Error(y.where + ": expected targets, found none");
    const bool values = is_real(y.array.type);
    Shape sample(shape.begin() + 1, shape.end());
    if (!values && sample == Shape{1}) sample = {};
    const bool planes = values && has_planes(shape);
    if (planes) sample = {shape[2], shape[3], shape[1]};
    const TargetKind kind = values ? TargetKind::values : TargetKind::classes;
    if (facts.target == TargetKind::none) {
      facts.target = kind;
      facts.target_shape = sample;
      y_notes_.push_back(fmt::format("{}{}{} {}", output, output.empty() ? "" : " ",
                                     shape_text(shape), to_string(y.array.type)));
    }
    if (kind != facts.target || sample != facts.target_shape || output != facts.output)
      throw Error(y.where + ": expected targets of the same type and shape as the others");
    if (values) {
      targets.values = floats(y);
      const auto bad =
          std::ranges::find_if_not(targets.values, [](float v) { return std::isfinite(v); });
      if (bad != targets.values.end())
        throw Error(fmt::format("{}: element {}: expected a finite number as a target, found {}",
                                y.where, bad - targets.values.begin(), *bad));
      if (planes) interleave(targets.values, shape);
    } else {
      load_classes(facts, targets, y);
    }
  }

  void load_classes(TargetFacts& facts, Targets& targets, const Source& y) {
    const std::int64_t most = options_.whole("classes", kMostClasses, 1, kMostClasses);
    const std::int64_t ignored = options_.whole("ignore", -1, INT32_MIN, INT32_MAX);
    const auto count = static_cast<std::size_t>(y.array.elements());
    targets.classes.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const Whole v = whole_at(y.array, i);
      if (options_.has("ignore") && v == ignored) {
        targets.classes.push_back(kNoClass);
        continue;
      }
      if (v < 0 || v >= most)
        throw Error(fmt::format("{}: element {}: expected a class from 0 to {}, found {}", y.where,
                                i, most - 1, v));
      targets.classes.push_back(static_cast<std::int32_t>(v));
      facts.classes = std::max<std::int64_t>(facts.classes, targets.classes.back() + 1);
    }
    if (options_.has("classes")) facts.classes = most;
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
    for (const NamedShape& input : facts_.inputs)
      text += fmt::format("input {} {}\n", input.name, to_string(input.shape));
    for (Side& side : sides_) {
      if (unlabelled_ && &side == &sides_[0]) {
        side.targets.further.resize(facts_.further.size());
        fill_unlabelled(facts_, side.count, side.targets);
        for (std::size_t o = 0; o < facts_.further.size(); ++o)
          fill_unlabelled(facts_.further[o], side.count, side.targets.further[o]);
      }
      text += digest_of(side.bytes.data(), side.bytes.size());
      text += digest_of(side.numbers.data(), side.numbers.size() * sizeof(float));
      add_digests(side.targets, text);
      for (const Targets& further : side.targets.further) add_digests(further, text);
    }
    for (const TargetFacts& further : facts_.further)
      text += fmt::format("output {} {} {}\n", further.output, to_string(further.target_shape),
                          further.classes);
    if (!facts_.output.empty()) text += fmt::format("first output {}\n", facts_.output);
    facts_.digest = sha256_hex(text).substr(0, 16);
    facts_.note =
        fmt::format("npy: x {}; y {}; {} training, {} validation, {} test samples", note_, y_note(),
                    facts_.sizes.train, facts_.sizes.validation, facts_.sizes.test);
    sources_.clear();
  }

  std::string y_note() const {
    if (facts_.target == TargetKind::none) return "none";
    std::vector<std::string> notes;
    for (std::size_t o = 0; o < y_notes_.size(); ++o) {
      const TargetFacts& facts = o == 0 ? facts_ : facts_.further[o - 1];
      notes.push_back(facts.target == TargetKind::classes
                          ? fmt::format("{}, {} classes", y_notes_[o], facts.classes)
                          : y_notes_[o] + " values");
    }
    return joined(notes, "; ");
  }

  SourceOptions options_;
  std::map<std::string, Sources> sources_;
  bool nchw_ = true, images_ = true, own_test_ = false, unlabelled_ = false;
  ArrayType type_ = ArrayType::float32;
  std::string note_;
  std::vector<std::string> y_notes_;  ///< by output
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
