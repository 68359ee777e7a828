//===- NormCases.cpp - Normalisations ------------------------------------------===//

#include "test/gradients/Registry.h"

#include <optional>

namespace gpuc::gradients {

static std::string list(const std::vector<std::string> &parts) {
  std::string text;
  for (const std::string &part : parts)
    text += (text.empty() ? "" : ", ") + part;
  return text;
}

static std::string tensors(const std::vector<std::string> &types) {
  std::vector<std::string> parts;
  for (const std::string &type : types)
    parts.push_back(tensor(type));
  return list(parts);
}

namespace {

/// One op with optional weight and bias; `first` of its results is differentiated.
struct Norm {
  std::string op, name;
  std::vector<Input> inputs; ///< Without weight and bias.
  std::string operands;      ///< "%x0 dim 1"
  std::string affine;        ///< Type of weight and bias.
  std::vector<std::string> results;
  bool hasWeight = true, hasBias = true;
  std::optional<double> rows = {}; ///< How many count.
  bool isSynced = false;
  std::string attributes = "";
  size_t first = 0;
  Derivatives derivatives = Derivatives::second;

  Case build() const {
    std::vector<Input> all = inputs;
    std::string text = operands;
    auto add = [&](const char *keyword) {
      text += std::string(" ") + keyword + " %x" + std::to_string(all.size());
      all.push_back({affine, 0.5, 1.5});
    };
    if (hasWeight)
      add("weight");
    if (hasBias)
      add("bias");
    if (rows) {
      text += " rows %x" + std::to_string(all.size());
      all.push_back({"i32", 0, 0, {*rows}});
    }
    if (isSynced)
      text += " sync";
    std::vector<std::string> types, names;
    for (const Input &input : all)
      types.push_back(input.type);
    std::vector<Output> outputs;
    for (size_t i = 0; i < results.size(); ++i) {
      names.push_back("%r" + std::to_string(i) + "_");
      outputs.push_back({names.back(), results[i]});
    }
    std::swap(outputs.front(), outputs[first]);
    Case built{op,
               name,
               all,
               list(names) + " = " + op + " " + text + " " + attributes + " : (" + tensors(types) + ") -> (" +
                   tensors(results) + ")",
               outputs,
               derivatives};
    built.inner = 8; // elements are a few deviations from the mean
    return built;
  }
};

} // namespace

/// layer_norm or rms_norm; `rows` is what stands before `normalised`.
static Norm rowNorm(const std::string &op, const std::string &name, const std::string &rows,
                    const std::string &normalised, const std::string &dim) {
  std::string shape = rows.empty() ? normalised : rows + "x" + normalised;
  std::vector<std::string> results = {real(shape), real(rows)};
  if (op == "layer_norm")
    results.push_back(real(rows));
  Norm norm{"gpuc." + op, name, {{real(shape), -2, 2}}, "%x0 dim " + dim, real(normalised), results};
  norm.hasBias = op == "layer_norm";
  return norm;
}

static void addRowNorms(Cases &cases, const std::string &op) {
  auto with = [&](Norm norm, auto change) {
    change(norm);
    cases.push_back(norm.build());
  };
  cases.push_back(rowNorm(op, "plain", "3", "5", "1").build());
  cases.push_back(rowNorm(op, "two_dims", "2x3", "5x7", "2").build());
  cases.push_back(rowNorm(op, "all", "", "7", "0").build());
  with(rowNorm(op, "no_affine", "3", "5", "1"), [](Norm &norm) { norm.hasWeight = norm.hasBias = false; });
  with(rowNorm(op, "eps", "3", "5", "1"), [](Norm &norm) { norm.attributes = "{eps = 0.5 : f64}"; });
  with(rowNorm(op, "statistic", "3", "5", "1"), [](Norm &norm) { norm.first = norm.results.size() - 1; });
  with(rowNorm(op, "vector", "5", "8", "1"), [](Norm &norm) { norm.derivatives = Derivatives::none; });
  with(rowNorm(op, "vector_and_one", "5", "17", "1"),
       [](Norm &norm) { norm.derivatives = Derivatives::none; });
  with(rowNorm(op, "long", "3", "1037", "1"), [](Norm &norm) { norm.derivatives = Derivatives::none; });
  // One element: of itself it is the mean, and of size 1.
  with(rowNorm(op, "extent_1", "3", "1", "1"), [](Norm &norm) { norm.attributes = "{eps = 0.5 : f64}"; });
  with(rowNorm(op, "special", "4", "3", "1"), [](Norm &norm) {
    norm.inputs[0].values = {nan, 1, 2, inf, 1, 2, 3, 3, 3, 100, 101, 102};
    norm.derivatives = Derivatives::none;
  });
  if (op == "rms_norm")
    return;
  with(rowNorm(op, "weight_alone", "3", "5", "1"), [](Norm &norm) { norm.hasBias = false; });
  with(rowNorm(op, "bias_alone", "3", "5", "1"), [](Norm &norm) { norm.hasWeight = false; });
  with(rowNorm(op, "mean", "3", "5", "1"), [](Norm &norm) { norm.first = 1; });
}

static Norm batchNorm(const std::string &name, const std::string &shape, const std::string &channels) {
  Input statistic{real(channels), 0.5, 1.5};
  return {"gpuc.batch_norm",
          name,
          {{real(shape), -2, 2}, statistic, statistic},
          "%x0 running %x1, %x2",
          real(channels),
          {real(shape), real(channels), real(channels), real(channels), real(channels)}};
}

static void addBatchNorms(Cases &cases) {
  auto with = [&](Norm norm, auto change) {
    change(norm);
    cases.push_back(norm.build());
  };
  cases.push_back(batchNorm("rows", "7x3", "3").build());
  cases.push_back(batchNorm("images", "2x3x5x3", "3").build());
  cases.push_back(batchNorm("one_channel", "4x1x3", "1").build());
  with(batchNorm("no_affine", "5x3", "3"), [](Norm &norm) { norm.hasWeight = norm.hasBias = false; });
  with(batchNorm("weight_alone", "5x3", "3"), [](Norm &norm) { norm.hasBias = false; });
  with(batchNorm("bias_alone", "5x3", "3"), [](Norm &norm) { norm.hasWeight = false; });
  with(batchNorm("momentum", "5x3", "3"),
       [](Norm &norm) { norm.attributes = "{eps = 0.5 : f64, momentum = 0.25 : f64}"; });
  // Each statistic as what is differentiated.
  const char *statistics[] = {"running_mean", "running_variance", "mean", "inverse_deviation"};
  for (size_t i = 0; i < 4; ++i)
    with(batchNorm(statistics[i], "3x2x2", "2"), [&](Norm &norm) { norm.first = i + 1; });
  // Of four rows none, some or all count; in one there is one element.
  for (const auto &[name, rows] : std::initializer_list<std::pair<const char *, double>>{
           {"before", -1}, {"none", 0}, {"one", 1}, {"some", 3}, {"all", 4}, {"beyond", 9}})
    with(batchNorm(std::string("rows_") + name, "4x2x1", "2"), [&](Norm &norm) {
      norm.rows = rows;
      norm.attributes = "{eps = 0.5 : f64}";
    });
  // Of one rank, as which the cases run.
  with(batchNorm("sync", "4x2x3", "2"), [](Norm &norm) { norm.isSynced = true; });
  with(batchNorm("sync_rows", "4x2x3", "2"), [](Norm &norm) {
    norm.isSynced = true;
    norm.rows = 3;
  });
  with(batchNorm("sync_no_affine", "4x2", "2"),
       [](Norm &norm) { norm.isSynced = true, norm.hasWeight = norm.hasBias = false; });
  for (size_t i = 0; i < 4; ++i)
    with(batchNorm(std::string("sync_") + statistics[i], "3x2x2", "2"), [&](Norm &norm) {
      norm.first = i + 1;
      norm.isSynced = true;
      norm.rows = 2;
    });
  with(batchNorm("one_element", "1x3", "3"), [](Norm &norm) { norm.attributes = "{eps = 0.5 : f64}"; });
  with(batchNorm("special", "3x4", "4"), [](Norm &norm) {
    norm.inputs[0].values = {nan, inf, 3, 100, 1, 1, 3, 101, 2, 2, 3, 102};
    norm.derivatives = Derivatives::none;
  });
}

/// Weight and bias have the operand's type, statistics are f32. Of five elements the variance is unbiased by
/// 5 / 4, which every type holds.
static Case halfBatchNorm(const std::string &element) {
  std::string rows = "5x3x1x" + element, channels = "3x" + element, body;
  auto narrowed = [&](const std::string &name, const std::string &from, const std::string &shape) {
    body += name + " = gpuc.cast " + from + " : " + tensor(real(shape)) + " to " +
            tensor(shape + "x" + element) + "\n";
  };
  narrowed("%h", "%x0", "5x3x1");
  narrowed("%w", "%x3", "3");
  narrowed("%b", "%x4", "3");
  body += "%y, %m, %v, %mean, %r = gpuc.batch_norm %h running %x1, %x2 weight %w bias %b {momentum = 0.75 : "
          "f64} : (" +
          tensors({rows, "3xf32", "3xf32", channels, channels}) + ") -> (" +
          tensors({rows, "3xf32", "3xf32", "3xf32", "3xf32"}) + ")";
  Case built{
      "gpuc.batch_norm",
      element,
      {{"5x3x1x$T", -2, 2}, {"3xf32", 0.5, 1.5}, {"3xf32", 0.5, 1.5}, {"3x$T", 0.5, 1.5}, {"3x$T", 0.5, 1.5}},
      body,
      {{"%y", rows}, {"%m", "3xf32"}, {"%v", "3xf32"}, {"%mean", "3xf32"}, {"%r", "3xf32"}},
      Derivatives::none};
  built.inner = 8;
  return built;
}

/// f16 and bf16 are computed as f32, and their statistics are f32.
static void addHalfNorms(Cases &cases) {
  auto add = [&](const std::string &op, const std::string &element, int64_t statistics) {
    std::string half = tensor("4x6x" + element), results = half, names = "%y";
    std::vector<Output> outputs = {{"%y", "4x6x" + element}};
    for (int64_t i = 0; i < statistics; ++i) {
      outputs.push_back({"%s" + std::to_string(i), "4xf32"});
      names += ", " + outputs.back().name;
      results += ", tensor<4xf32>";
    }
    Case built{"gpuc." + op,
               element,
               {{"4x6x$T", -2, 2}},
               "%h = gpuc.cast %x0 : tensor<4x6x$T> to " + half + "\n" + names + " = gpuc." + op +
                   " %h dim 1 : (" + half + ") -> (" + results + ")",
               outputs,
               Derivatives::none};
    built.inner = 8;
    cases.push_back(built);
  };
  for (const char *element : {"f16", "bf16"}) {
    add("layer_norm", element, 2);
    add("rms_norm", element, 1);
    cases.push_back(halfBatchNorm(element));
  }
}

void addNormCases(Cases &cases) {
  addHalfNorms(cases);
  addRowNorms(cases, "layer_norm");
  addRowNorms(cases, "rms_norm");
  addBatchNorms(cases);
}

} // namespace gpuc::gradients
