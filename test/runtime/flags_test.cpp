// The command-line contract of the tools: accepted forms, errors that name the culprit, exit codes.
#include "runtime/base/flags.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "runtime/base/flags_elsewhere.h"
#include "runtime/base/version.h"

namespace gpuc {
namespace {

/// A tool with one flag of each kind.
struct Tool {
  Tool() : cli("gpuc-test", "Tests flags.") {
    cli.addString("input", &input, "FILE", "what to read").shortName('i');
    cli.addString("json", &json, "FILE", "where to report").impliedValue("-");
    cli.addInt("threads", &threads, "N", "how many threads").range(0, 64);
    cli.addInt("level", &level, "N", "how much to optimize").shortName('O').range(0, 3);
    cli.addDouble("clip-norm", &clip, "X", "the largest norm");
    cli.addSize("memory-budget", &budget, "the most memory");
    cli.addBool("strict", &strict, "refuse");
    cli.addString("precision", &precision, "TYPE", "number format").choices({"f32", "bf16"});
    cli.addStrings("variable", &variables, "NAME", "what to print");
  }

  ParseOutcome parse(const std::vector<std::string>& arguments) { return cli.parse(arguments); }
  /// The error's text without "error: " and the newline; fails unless the exit code is 2.
  std::string errorOf(const std::vector<std::string>& arguments) {
    ParseOutcome outcome = parse(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with("error: ") && outcome.err.ends_with("\n")) << outcome.err;
    return outcome.err.size() < 8 ? "" : outcome.err.substr(7, outcome.err.size() - 8);
  }

  std::string input = "none", precision = "f32";
  std::optional<std::string> json;
  int64_t threads = 2;
  std::optional<int64_t> level, budget;
  double clip = 0.5;
  bool strict = false;
  std::vector<std::string> variables;
  CommandLine cli;
};

TEST(Flags, DefaultsStayWhenNothingIsGiven) {
  Tool tool;
  EXPECT_FALSE(tool.parse({}).exit_code);
  EXPECT_EQ(tool.input, "none");
  EXPECT_EQ(tool.threads, 2);
  EXPECT_FALSE(tool.level || tool.budget || tool.json || tool.strict);
}

TEST(Flags, AcceptsEqualsAndSeparateValues) {
  Tool tool;
  EXPECT_FALSE(
      tool.parse({"--input=a=b", "--threads", "7", "--clip-norm", "-1.5", "--memory-budget=2KiB", "--strict"})
          .exit_code);
  EXPECT_EQ(tool.input, "a=b");
  EXPECT_EQ(tool.threads, 7);
  EXPECT_EQ(tool.clip, -1.5);
  EXPECT_EQ(tool.budget, 2048);
  EXPECT_TRUE(tool.strict);
}

TEST(Flags, ShortNamesTakeAttachedAndSeparateValues) {
  Tool tool;
  EXPECT_FALSE(tool.parse({"-O3", "-i", "-"}).exit_code);
  EXPECT_EQ(tool.level, 3);
  EXPECT_EQ(tool.input, "-");
}

TEST(Flags, SwitchesCanBeTurnedOff) {
  Tool tool;
  tool.strict = true;
  EXPECT_FALSE(tool.parse({"--strict=false"}).exit_code);
  EXPECT_FALSE(tool.strict);
  EXPECT_EQ(Tool().errorOf({"--strict=yes"}), "--strict: 'yes' is neither true nor false");
}

TEST(Flags, ImpliedValueDoesNotTakeTheNextArgument) {
  Tool tool;
  std::string positional;
  tool.cli.addPositional("PLAN", &positional, "the plan");
  EXPECT_FALSE(tool.parse({"--json", "x.plan"}).exit_code);
  EXPECT_EQ(tool.json, "-");
  EXPECT_EQ(positional, "x.plan");
}

TEST(Flags, RepeatableFlagsCollect) {
  Tool tool;
  EXPECT_FALSE(tool.parse({"--variable=a", "--variable", "b"}).exit_code);
  EXPECT_EQ(tool.variables, (std::vector<std::string>{"a", "b"}));
}

TEST(Flags, OtherFlagsGivenTwiceAreAnError) {
  EXPECT_EQ(Tool().errorOf({"--threads=1", "--threads=1"}), "--threads is given twice");
}

TEST(Flags, UnknownFlagNamesTheNearest) {
  EXPECT_EQ(Tool().errorOf({"--inptu=x"}), "unknown flag --inptu; did you mean --input?");
  EXPECT_EQ(Tool().errorOf({"--wholly-different"}),
            "unknown flag --wholly-different; did you mean --memory-budget?");
  EXPECT_EQ(Tool().errorOf({"--Clip_Norm=1"}), "unknown flag --Clip_Norm; did you mean --clip-norm?");
}

TEST(Flags, UnknownFlagOfAnotherToolNamesThatTool) {
  EXPECT_EQ(Tool().errorOf({"--epochs=3"}), "unknown flag --epochs; --epochs is a flag of gpuc-train");
  EXPECT_EQ(
      Tool().errorOf({"--device", "cuda"}),
      "unknown flag --device; --device is a flag of gpuc-generate, gpuc-run, gpuc-simulate and gpuc-train");
  EXPECT_EQ(Tool().errorOf({"--accumulat=2"}),
            "unknown flag --accumulat; did you mean --accumulate of gpuc-compile and gpuc-simulate?");
  // One that looks alike here comes first.
  EXPECT_EQ(Tool().errorOf({"--variables=x"}),
            "unknown flag --variables; did you mean --variable? --variables is a flag of gpuc-generate, "
            "gpuc-inspect, gpuc-run and gpuc-train");
  EXPECT_EQ(Tool().errorOf({"--gpuc-fuse"}), "unknown flag --gpuc-fuse; --gpuc-fuse is a flag of gpuc-opt");
  EXPECT_EQ(Tool().errorOf({"--mlir-timing"}),
            "unknown flag --mlir-timing; --mlir-timing is a flag of gpuc-compile");
}

TEST(Flags, UnknownFlagOfAnotherProgramIsTranslated) {
  EXPECT_EQ(Tool().errorOf({"--lr=0.1"}),
            "unknown flag --lr; did you mean --optimizer=adam:lr=… of gpuc-compile and gpuc-simulate?");
  EXPECT_EQ(Tool().errorOf({"-lr", "0.1"}),
            "unknown flag -lr; did you mean --optimizer=adam:lr=… of gpuc-compile and gpuc-simulate?");
  EXPECT_EQ(Tool().errorOf({"--max_grad_norm=1"}),
            "unknown flag --max_grad_norm; did you mean --clip-norm=X?");
  EXPECT_EQ(Tool().errorOf({"--nproc_per_node=8"}),
            "unknown flag --nproc_per_node; did you mean --ranks=N of gpuc-simulate and gpuc-train?");
  EXPECT_EQ(
      Tool().errorOf({"--nnodes=8"}),
      "unknown flag --nnodes; machines are a launcher's: mpirun --hostfile or srun --nodes, in front of "
      "gpuc-train");
  EXPECT_EQ(Tool().errorOf({"--gpus=8"}),
            "unknown flag --gpus; several GPUs are not there yet; --device=cuda:N of gpuc-run and gpuc-train "
            "picks one");
}

TEST(Flags, EveryHabitIsOneAndMeansAFlagThatThereIs) {
  std::set<std::string> seen;
  for (const Habit& habit : habits()) {
    EXPECT_NE(habit.flags.empty(), habit.sentence.empty()) << habit.words;
    std::istringstream words{std::string(habit.words)};
    for (std::string word; words >> word;) EXPECT_TRUE(seen.insert(word).second) << word << " stands twice";
    for (std::string_view flag : habit.flags) {
      std::string_view name = flag.substr(2, flag.find('=') - 2);
      EXPECT_TRUE(std::any_of(toolFlags().begin(), toolFlags().end(), [&](const ToolFlag& known) {
        return known.flag == name;
      })) << flag;
    }
  }
  EXPECT_GT(seen.size(), 200u);
}

TEST(Flags, OneDashBeforeALongNameIsNoValueOfAShortOne) {
  EXPECT_EQ(Tool().errorOf({"-input=x"}), "unknown flag -input; did you mean --input?");
  EXPECT_EQ(Tool().errorOf({"-threads", "2"}), "unknown flag -threads; did you mean --threads?");
  EXPECT_EQ(Tool().errorOf({"-t"}), "unknown flag -t; did you mean --threads=N?");
  EXPECT_EQ(Tool().errorOf({"-p=2"}), "unknown flag -p; did you mean --precision=TYPE?");
  EXPECT_EQ(Tool().errorOf({"-z"}), "unknown flag -z; see --help");
}

TEST(Flags, KeysAreSaidWithoutDashes) {
  std::vector<std::string> keys;
  CommandLine cli("gpuc-model", "Prints a model.");
  cli.addPositionals("key=value", &keys, "its parameters");
  EXPECT_EQ(cli.parse({"--hidden=8"}).err,
            "error: unknown flag --hidden; did you mean --help? key=value is written without dashes\n");
}

TEST(Flags, MissingValuesAndArgumentsAreNamed) {
  EXPECT_EQ(Tool().errorOf({"--input"}), "missing value: --input=FILE");
  EXPECT_EQ(Tool().errorOf({"--input", "--strict"}), "missing value: --input=FILE");

  Tool tool;
  std::string output;
  tool.cli.addString("output", &output, "FILE", "what to write").required();
  EXPECT_EQ(tool.errorOf({}), "missing argument: --output=FILE");
}

TEST(Flags, MalformedValuesAreQuoted) {
  EXPECT_EQ(Tool().errorOf({"--threads=four"}), "--threads: 'four' is not an integer");
  EXPECT_EQ(Tool().errorOf({"--threads="}), "missing value: --threads=N");
  EXPECT_EQ(Tool().errorOf({"--threads=65"}), "--threads: 65 is more than 64");
  EXPECT_EQ(Tool().errorOf({"--threads=-1"}), "--threads: -1 is less than 0");
  EXPECT_EQ(Tool().errorOf({"--clip-norm=nan"}), "--clip-norm: 'nan' is not a number");
  EXPECT_EQ(Tool().errorOf({"--precision=f31"}), "--precision: 'f31' is none of f32, bf16");
}

TEST(Flags, AWordMayStandForANumber) {
  for (auto [text, error] :
       {std::pair("--batch=max", ""), std::pair("--batch=12", ""),
        std::pair("--batch=0", "error: --batch: 0 is less than 1\n"),
        std::pair("--batch=most", "error: --batch: 'most' is not an integer, nor 'max'\n")}) {
    std::optional<int64_t> batch;
    bool largest = false;
    CommandLine cli("gpuc-test", "");
    cli.addInt("batch", &batch, "N|max", "").range(1).orWord("max", &largest);
    EXPECT_EQ(cli.parse({text}).err, error);
    EXPECT_EQ(largest, text == std::string("--batch=max"));
    EXPECT_EQ(batch == 12, text == std::string("--batch=12"));
  }
}

TEST(Flags, PositionalsFillInOrder) {
  std::string model;
  std::vector<std::string> keys;
  CommandLine cli("gpuc-model", "Prints a model.");
  cli.addPositional("NAME", &model, "which");
  cli.addPositionals("key=value", &keys, "its parameters");
  EXPECT_FALSE(cli.parse({"mlp", "hidden=8", "--", "--odd"}).exit_code);
  EXPECT_EQ(model, "mlp");
  EXPECT_EQ(keys, (std::vector<std::string>{"hidden=8", "--odd"}));
}

TEST(Flags, PositionalsMissingOrTooManyAreErrors) {
  Tool tool;
  EXPECT_EQ(tool.errorOf({"stray"}), "unexpected argument 'stray'; see --help");
  std::string plan;
  tool.cli.addPositional("PLAN", &plan, "the plan");
  EXPECT_EQ(tool.errorOf({}), "missing argument: PLAN");
}

TEST(Flags, OptionalPositionalMayBeLeftOut) {
  std::optional<std::string> name;
  CommandLine cli("gpuc-test", "Tests flags.");
  cli.addPositional("NAME", &name, "which");
  EXPECT_FALSE(cli.parse(std::vector<std::string>{}).exit_code);
  EXPECT_FALSE(name);
  EXPECT_FALSE(cli.parse({"mlp"}).exit_code);
  EXPECT_EQ(name, "mlp");
}

TEST(Flags, PrefixPassesThrough) {
  Tool tool;
  std::vector<std::string> mlir;
  tool.cli.passThrough("mlir-", &mlir, "MLIR's own");
  EXPECT_FALSE(tool.parse({"--mlir-timing", "--mlir-timing-display=tree"}).exit_code);
  EXPECT_EQ(mlir, (std::vector<std::string>{"--mlir-timing", "--mlir-timing-display=tree"}));
}

TEST(Flags, VersionAndHelpNeedNothingElse) {
  Tool tool;
  std::string plan;
  tool.cli.addPositional("PLAN", &plan, "the plan");
  ParseOutcome version = tool.parse({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out, std::string("gpuc-test ") + GPUC_VERSION + "\n");
  for (const char* help : {"--help", "-h"}) {
    ParseOutcome outcome = Tool().parse({help});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.out, Tool().cli.help());
    EXPECT_EQ(outcome.err, "");
  }
}

TEST(Flags, HelpNamesEveryFlagWithItsDefault) {
  Tool tool;
  std::string help = tool.cli.help();
  EXPECT_TRUE(help.starts_with("Usage: gpuc-test [flags]\nTests flags.\n")) << help;
  for (const char* row : {"  -i, --input=FILE            what to read (default: none)\n", "--json[=FILE]",
                          "--threads=N                 how many threads (default: 2)\n",
                          "--memory-budget=SIZE", "--strict                    refuse\n",
                          "number format: f32, bf16 (default: f32)", "--help", "--version"})
    EXPECT_NE(help.find(row), std::string::npos) << row << " is not in\n" << help;
}

/// In a pipe, or a file, as on a terminal of 100 columns.
TEST(Flags, HelpGoesOnUnderWhatItSays) {
  Tool tool;
  std::string text, words;
  for (int i = 0; i < 40; ++i) words += (i == 0 ? "" : " ") + std::string(1 + i % 7, 'a' + i % 26) + "…";
  tool.cli.addString("long", &text, "TEXT", words);
  std::string help = tool.cli.help(), found;
  std::istringstream lines(help.substr(help.find("--long=TEXT") - 2));
  for (std::string line; std::getline(lines, line) && !line.starts_with("  -h");) {
    size_t characters = 0;
    for (char byte : line) characters += (byte & 0xC0) != 0x80;
    EXPECT_LE(characters, 100u) << line;
    EXPECT_TRUE(found.empty() || line.starts_with(std::string(30, ' ') + line[30])) << line;
    found += (found.empty() ? "" : " ") + line.substr(30);
  }
  EXPECT_EQ(found, words);
}

TEST(Flags, NearestNamePrefersTheSmallestDistance) {
  EXPECT_EQ(nearestName("epoch", {"epochs", "each"}), "epochs");
  EXPECT_EQ(nearestName("abc", {"abd", "abe"}), "abd");
  EXPECT_EQ(nearestName("epochs", {"eps", "epoch", "each"}), "epoch");  // one deleted, one inserted
  EXPECT_EQ(nearestName("lr", {"log", "lrr"}), "lrr");
  EXPECT_EQ(nearestName("x", {}), "");
}

TEST(Flags, SimilarNameIsNoneBeyondHalfOfTheLetters) {
  EXPECT_EQ(similarName("a.bais", {"b.weight", "a.bias"}), "a.bias");
  EXPECT_EQ(similarName("abc", {"zzz", "abd"}), "abd");  // one of three
  EXPECT_EQ(similarName("abcd", {"abxy"}), "");          // two of four are half
  EXPECT_EQ(similarName("abc", {"abcde"}), "");          // of the name's letters, not of the candidate's
  EXPECT_EQ(similarName("zzz", {"a.bias"}), "");
  EXPECT_EQ(similarName("", {"a"}), "");
  EXPECT_EQ(similarName("x", {}), "");
}

}  // namespace
}  // namespace gpuc
