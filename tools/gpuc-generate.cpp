// gpuc-generate: text from a trained model. See runtime/generate/generator.h.
#include "runtime/base/flags.h"
#include "runtime/base/tool_main.h"
#include "runtime/exec/devices.h"
#include "runtime/generate/generator.h"

using namespace gpuc;

static int tool(int argc, char** argv) {
  GenerateOptions options;
  int64_t seed = 0;
  CommandLine cli("gpuc-generate", "Writes text that goes on from a prompt, by a model of text.");
  cli.addPositional("PLAN", &options.plan, "a plan with predict: x [batch, length] to logits for each token");
  cli.addStrings("variables", &options.variables, "FILE", "safetensors with the model's weights, base first")
      .required();
  cli.addString("prompt", &options.prompt, "TEXT", "what to go on from; each byte is a token");
  cli.addString("prompt-tokens", &options.prompt_tokens, "N,N,…",
                "the same as token numbers; the answer is numbers too");
  cli.addInt("tokens", &options.tokens, "N", "how many tokens to add").required().range(0);
  cli.addDouble("temperature", &options.sampling.temperature, "X",
                "divides the logits; 0 takes the likeliest token each time")
      .range(0);
  cli.addInt("top-k", &options.sampling.top_k, "N", "draw among the N likeliest tokens; 0 is all").range(0);
  cli.addInt("seed", &seed, "N", "of the draws").range(0);
  cli.addInt("threads", &options.threads, "N", "threads to compute with; 0 is one for each core")
      .range(0, 4096);
  cli.addString("device", &options.device, "NAME", "auto, host, cuda or cuda:N");
  if (std::optional<int> exit_code = cli.parse(argc, argv)) return *exit_code;
  if (options.prompt.empty() == options.prompt_tokens.empty())
    return CommandLine::usageError("give either --prompt=TEXT or --prompt-tokens=N,N,…");
  if (Status device = checkDeviceName(options.device); !device.ok())
    return CommandLine::usageError("--device: " + device.message());
  options.sampling.seed = static_cast<uint64_t>(seed);

  return exitStatus(generate(options));
}

int main(int argc, char** argv) { return runTool(argc, argv, tool); }
