#include "hearth/trainer/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CommandLineTest, TakesTheCaffeProgramsFlagsWithOneDashOrTwo) {
  for (const char* dash : {"-", "--"}) {
    const std::string d(dash);
    const CommandLine line = ParseCommandLine(
        {"train", d + "solver=s.prototxt", d + "weights", "a.caffemodel,b.caffemodel", d + "stage",
         "x,y", d + "level", "-1", d + "gpu", "0", d + "sighup_effect=none"});
    EXPECT_EQ(line.message, "");
    EXPECT_EQ(line.command, CommandLine::Command::kTrain);
    EXPECT_EQ(line.local.solver, "s.prototxt");
    EXPECT_THAT(line.local.weights, ElementsAre("a.caffemodel", "b.caffemodel"));
    EXPECT_THAT(line.local.stages, ElementsAre("x", "y"));
    EXPECT_EQ(line.local.level, -1);
    EXPECT_EQ(line.local.sigint_effect, "stop");
    EXPECT_EQ(line.local.sighup_effect, "none");
  }
}

TEST(CommandLineTest, TestTakesAModelItsWeightsAndIterations) {
  const CommandLine line =
      ParseCommandLine({"test", "-model", "n.prototxt", "-weights", "w", "-iterations", "7"});
  EXPECT_EQ(line.command, CommandLine::Command::kTest);
  EXPECT_EQ(line.local.model, "n.prototxt");
  EXPECT_EQ(line.local.iterations, 7);
}

TEST(CommandLineTest, MistakesAreOneLineAndANonZeroExitCode) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"train"},
        {"train", "-slover", "x"},
        {"dance"},
        {},
        {"train", "-solver", "s", "-snapshot", "a", "-weights", "b"},
        {"test", "-model", "m", "-weights", "w", "-iterations", "0"}}) {
    const CommandLine line = ParseCommandLine(arguments);
    EXPECT_EQ(line.exit_code, 1);
    EXPECT_THAT(line.message, HasSubstr("hearth: "));
    EXPECT_THAT(line.message, Not(HasSubstr("\n")));
  }
}

TEST(CommandLineTest, HelpListsWhatPeopleUseAndHidesTheTrainer) {
  const CommandLine line = ParseCommandLine({"--help"});
  EXPECT_EQ(line.exit_code, 0);
  EXPECT_THAT(line.message, HasSubstr("train a net"));
  EXPECT_THAT(line.message, Not(HasSubstr("trainer")));
  EXPECT_THAT(ParseCommandLine({"train", "--help"}).message, HasSubstr("--solver"));
}

TEST(CommandLineTest, TheTrainerTakesItsControlDescriptor) {
  const CommandLine line = ParseCommandLine({"trainer", "--control-fd", "5"});
  EXPECT_EQ(line.command, CommandLine::Command::kTrainer);
  EXPECT_EQ(line.control_fd, 5);
}

}  // namespace
}  // namespace hearth::trainer
