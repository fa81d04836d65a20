// A sweep as the engine writes it, made up but plausible and deterministic: what the report's tests
// draw.
#pragma once
#include <string>
#include <vector>

#include "formats/storage/json.hpp"

namespace numemu::experiments::sample {

struct Layer {
  const char* name;
  int parameters;
};
inline const std::vector<Layer> kLayers = {
    {"conv1", 150}, {"conv2", 2400}, {"fc1", 48000}, {"fc2", 10080}, {"fc3", 840}};

/// A format, its bits and the SQNR in dB that it gives a normal tensor under an absmax scale.
struct Swept {
  std::string name;
  int bits;
  double sqnr;
};
inline const std::vector<Swept> kFormats = {
    {"float4_e2m1fn", 4, 17.1}, {"float6_e2m3fn", 6, 28.4},
    {"float6_e3m2fn", 6, 26.0}, {"float8_e3m4", 8, 37.6},
    {"float8_e4m3fn", 8, 31.5}, {"float8_e4m3fnuz", 8, 31.4},
    {"float8_e5m2", 8, 25.5},   {"float8_e5m2fnuz", 8, 25.5},
    {"int2", 2, 2.1},           {"int3", 3, 8.9},
    {"int4", 4, 15.6},          {"int5", 5, 21.9},
    {"int6", 6, 28.0},          {"int7", 7, 34.1},
    {"int8", 8, 40.1}};

/// Reproducible wobble in [-1, 1].
double wobble(std::size_t i, double salt);

Json role(const Swept& f, const char* granularity);

Json point(const Swept* w, const Swept* a, const std::string& unit);

Json tensor(const Layer& layer, std::size_t at, const char* name, const Swept& f);

Json row(std::size_t at, const Swept* w, const Swept* a, const std::string& unit);

/// The float32 baseline, every format and a few mixes, on two units: 47 rows.
std::vector<Json> rows();

/// int4 on a float16 accumulator that overflows in conv2, after the others.
Json not_finite_row();

/// Block formats, as lenet-glyphs-mx.json sweeps them.
inline const std::vector<Swept> kBlocks = {
    {"mxint8", 8, 40.4}, {"mxfp8_e4m3", 8, 31.5}, {"mxfp6_e2m3", 6, 31.2}, {"mxfp4", 4, 18.6}};

/// The float32 baseline and block formats on a described unit: 5 rows.
std::vector<Json> block_rows();

/// The same of a character model: bits per character rise with the noise.
std::vector<Json> text_rows();

/// One layer at a time at each block format, then all, as the experiment sensitivity runs them.
std::vector<Json> sensitivity_rows();

Json chart_point(double x, const char* name, double y, double half);

Json chart(const char* kind, const char* title, bool log, const Json& series);

Json series(const char* name, bool predicted, const Json& points);

/// One chart of every kind, linear and logarithmic, with bands and error bars.
Json charts();

/// experiment.json of such rows.
Json experiment();

/// Histograms of every weight and activation tensor.
Json tensors();

Json sweep();

/// Text that would run if it were ever taken for markup, and that breaks careless CSV and Markdown.
inline const std::string kPoison =
    "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1><!-- "
    "\"'`|,\r\n{{points}}";

/// The value with kPoison after every name that is free to choose; formats stay, so that charts
/// have grids.
Json poisoned(const Json& value, const std::string& key = "");

}  // namespace numemu::experiments::sample
