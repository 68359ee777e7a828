//===- PrecisionLists.cpp - What each op computes in under mixed precision --===//

#include "passes/precision/PrecisionLists.h"

#include "llvm/ADT/STLExtras.h"

namespace gpuc {

using enum PrecisionClass;

static constexpr PrecisionRule kRules[] = {
    // Products.
    {"matmul", lower, "matmul mm bmm mv addmm baddbmm chain_matmul einsum linear"},
    {"conv2d", lower, "conv1d conv2d convolution"},
    {"conv2d_input_gradient", lower, "conv_transpose1d conv_transpose2d"},
    {"conv2d_filter_gradient", lower, ""},
    {"attention", lower, ""},                  // scaled_dot_product_attention came into the list after 1.13
    {"linear_cross_entropy", lower, "linear"}, // its loss is computed in f32 whatever the layer's type
    {"linear_accuracy", lower, "linear"},

    // What overflows or loses digits.
    {"exp", f32, "exp"},
    {"expm1", f32, "expm1"},
    {"log", f32, "log"},
    {"log1p", f32, "log1p"},
    {"pow", f32, "pow"},
    {"rsqrt", f32, "rsqrt"},
    {"tan", f32, "tan"},
    {"softmax", f32, "softmax"},
    {"log_softmax", f32, "log_softmax"},
    {"layer_norm", f32, "layer_norm group_norm"},
    {"rms_norm", f32, ""},
    {"sum", f32, "sum"},
    {"prod", f32, "prod"},
    {"cumsum", f32, "cumsum"},
    {"cross_entropy", f32, "log_softmax nll_loss"},
    {"nll", f32, "nll_loss"},
    {"mse", f32, "mse_loss"},
    {"l1", f32, "l1_loss"},
    {"huber", f32, "smooth_l1_loss"},
    {"bce_with_logits", f32, "binary_cross_entropy_with_logits"},

    // In the type of the operand, but not computed in it: what is added up, and what has several steps.
    {"batch_norm", wide, "batch_norm"},
    {"all_reduce", wide, ""},
    {"reduce_scatter", wide, ""},
    {"reduce_to_owners", wide, ""},
    {"mean", wide, "mean"},
    {"avg_pool2d", wide, "avg_pool2d"},
    {"avg_pool2d_gradient", wide, ""},
    {"gelu", wide, "gelu"},
    {"silu", wide, "silu"},

    // The rest follows its operands.
    {"add", promote, "add"},
    {"sub", promote, "sub"},
    {"mul", promote, "mul"},
    {"div", promote, "div"}, // 1 / x is PyTorch's reciprocal, and in f32
    {"rem", promote, "fmod"},
    {"max", promote, "maximum"},
    {"min", promote, "minimum"},
    {"fma", promote, "addcmul"},
    {"neg", promote, "neg"},
    {"abs", promote, "abs"},
    {"sign", promote, "sign"},
    {"floor", promote, "floor"},
    {"ceil", promote, "ceil"},
    {"round", promote, "round"},
    {"sqrt", promote, "sqrt"},
    {"sin", promote, "sin"},
    {"cos", promote, "cos"},
    {"atan", promote, "atan"},
    {"tanh", promote, "tanh"},
    {"sigmoid", promote, "sigmoid"},
    {"erf", promote, "erf"},
    {"relu", promote, "relu"},
    {"leaky_relu", promote, "leaky_relu"},
    {"clamp", promote, "clamp"},
    {"and", promote, "bitwise_and"},
    {"or", promote, "bitwise_or"},
    {"xor", promote, "bitwise_xor"},
    {"not", promote, "bitwise_not"},
    {"compare", promote, "eq ne lt le gt ge"},
    {"select", promote, "where"},
    {"is_finite", promote, "isfinite"},
    {"stop_gradient", promote, "detach"},
    {"scale_gradient", promote, ""},
    {"reshape", promote, "reshape"},
    {"transpose", promote, "permute"},
    {"broadcast", promote, "expand"},
    {"slice", promote, "slice"},
    {"pad", promote, "pad"},
    {"concat", promote, "cat stack"},
    {"reverse", promote, "flip"},
    {"all_gather", promote, ""},
    {"gather_from_owners", promote, ""},
    {"gather", promote, "gather index_select embedding"},
    {"scatter_add", promote, "scatter_add"},
    {"dynamic_slice", promote, "narrow"},
    {"dynamic_update_slice", promote, "slice_scatter"},
    {"sort", promote, "sort"},
    {"top_k", promote, "topk"},
    {"reduce_max", promote, "amax"},
    {"reduce_min", promote, "amin"},
    {"argmax", promote, "argmax"},
    {"dropout", promote, "dropout"},
    {"max_pool2d", promote, "max_pool2d"},
    {"max_pool2d_gradient", promote, ""},
    {"max_pool2d_gather", promote, ""},
    {"accuracy", promote, ""},
    {"scan", promote, "lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell",
     "a loop's ops are visited one by one: in a cell products are lower, and the rest, the state too, "
     "follows "
     "them, unless an op of the f32 list is in it"},

    // Types are part of what these say.
    {"cast", fixed, ""},
    {"constant", fixed, ""},
    {"iota", fixed, ""},
    {"random_bits", fixed, ""},
    {"random_uniform", fixed, ""},
    {"random_normal", fixed, ""},
    {"read", fixed, ""},
    {"assign", fixed, ""},
    {"gradient", fixed, ""},
    {"variable", fixed, ""},
    {"recipe", fixed, ""},
    {"checkpoint", fixed, ""},
    {"fused", fixed, ""},
    {"yield", fixed, ""},
    // What backward passes and updates are made of: they come after, with the types that they find.
    {"attention_gradient", fixed, ""},
    {"linear_cross_entropy_gradient", fixed, ""},
    {"sgd_update", fixed, ""},
    {"rmsprop_update", fixed, ""},
    {"adagrad_update", fixed, ""},
    {"adadelta_update", fixed, ""},
    {"adamax_update", fixed, ""},
    {"nadam_update", fixed, ""},
    {"radam_update", fixed, ""},
    {"asgd_update", fixed, ""},
    {"rprop_update", fixed, ""},
    {"lion_update", fixed, ""},
    {"adafactor_update", fixed, ""},
    {"muon_update", fixed, ""},
    {"adam_update", fixed, ""},
};

llvm::ArrayRef<PrecisionRule> precisionRules() { return kRules; }

const PrecisionRule *findPrecisionRule(llvm::StringRef op) {
  const auto *found = llvm::find_if(kRules, [&](const PrecisionRule &rule) { return rule.op == op; });
  return found == std::end(kRules) ? nullptr : found;
}

} // namespace gpuc
