#include "cli/flags.h"

#include <gtest/gtest.h>

namespace bimetal::cli {
namespace {

using Arguments = std::vector<std::string>;

std::string ErrorOf(const Arguments& arguments) {
  const auto line = ParseFlags(arguments);
  return line ? "accepted" : line.error().message;
}

TEST(ParseFlags, TakesOptionsInEveryFormAndOnBothSidesOfTheCommand) {
  for (const Arguments& arguments :
       {Arguments{"explain", "train", "-n", "team", "-o", "json", "--kubeconfig", "f"},
        Arguments{"-nteam", "--kubeconfig=f", "explain", "-ojson", "train"},
        Arguments{"-n=team", "--output=json", "explain", "train", "--kubeconfig=f"},
        Arguments{"--namespace", "x", "explain", "train", "--namespace=team", "--output", "json",
                  "--kubeconfig", "f"}}) {
    const auto line = ParseFlags(arguments);
    ASSERT_TRUE(line) << line.error().message;
    EXPECT_EQ(line->command, Command::kExplain);
    EXPECT_EQ(line->job, "train");
    EXPECT_EQ(line->ns, "team");
    EXPECT_EQ(line->kubeconfig, "f");
    EXPECT_EQ(line->output, Output::kJson);
  }
}

TEST(ParseFlags, WhatIfIsExplainsAndATable) {
  EXPECT_TRUE(ParseFlags({"explain", "train", "--what-if"})->what_if);
  EXPECT_FALSE(ParseFlags({"explain", "train"})->what_if);
  EXPECT_EQ(ErrorOf({"jobs", "--what-if"}), "jobs takes no --what-if");
  EXPECT_EQ(ErrorOf({"explain", "train", "--what-if", "-o", "json"}),
            "--what-if is shown as a table: leave out -o json");
}

TEST(ParseFlags, DefaultsAreATableOfTheContextsNamespace) {
  const auto line = ParseFlags({"jobs"});
  ASSERT_TRUE(line);
  EXPECT_EQ(line->command, Command::kJobs);
  EXPECT_EQ(line->output, Output::kTable);
  EXPECT_EQ(line->ns, "");
  EXPECT_FALSE(line->all_namespaces);
  EXPECT_TRUE(ParseFlags({"jobs", "-A"})->all_namespaces);
  EXPECT_EQ(ParseFlags({"nodes", "--context", "c"})->context, "c");
}

TEST(ParseFlags, HelpOfEachCommandNeedsNoArguments) {
  for (const Arguments& arguments :
       {Arguments{"explain", "--help"}, Arguments{"help", "explain"}, Arguments{"-h", "explain"}}) {
    const auto line = ParseFlags(arguments);
    ASSERT_TRUE(line) << line.error().message;
    EXPECT_EQ(line->command, Command::kHelp);
    EXPECT_EQ(line->topic, Command::kExplain);
  }
  EXPECT_EQ(ParseFlags({"--help"})->topic, Command::kHelp);
  EXPECT_EQ(ParseFlags({"help"})->topic, Command::kHelp);
  EXPECT_EQ(ParseFlags({"--version"})->command, Command::kVersion);
}

TEST(ParseFlags, NamesWhatIsWrong) {
  EXPECT_EQ(
      ErrorOf({}),
      "no command given; use nodes, jobs, explain, validate, replay, doctor, version or help");
  EXPECT_EQ(ErrorOf({"pods"}),
            "unknown command \"pods\"; use nodes, jobs, explain, validate, replay, doctor, version "
            "or help");
  EXPECT_EQ(
      ErrorOf({"help", "x"}),
      "unknown command \"x\"; use nodes, jobs, explain, validate, replay, doctor, version or help");
  EXPECT_EQ(ErrorOf({"nodes", "--wide"}), "unknown option --wide");
  EXPECT_EQ(ErrorOf({"nodes", "x"}), "unexpected argument \"x\"");
  EXPECT_EQ(ErrorOf({"explain", "a", "b"}), "unexpected argument \"b\"");
  EXPECT_EQ(ErrorOf({"explain"}), "explain needs the name of a job");
  EXPECT_EQ(ErrorOf({"jobs", "-n"}), "option -n needs a value");
  EXPECT_EQ(ErrorOf({"jobs", "--namespace="}), "option --namespace needs a value");
  EXPECT_EQ(ErrorOf({"jobs", "--all-namespaces=no"}), "option --all-namespaces takes no value");
  EXPECT_EQ(ErrorOf({"jobs", "-o", "yaml"}), "unknown output \"yaml\"; use table or json");
  EXPECT_EQ(ErrorOf({"jobs", "-A", "-n", "x"}), "-A and -n exclude each other; give one of them");
  EXPECT_EQ(ErrorOf({"nodes", "-n", "x"}), "nodes takes no -n: nodes belong to no namespace");
  EXPECT_EQ(ErrorOf({"version", "-n", "x"}), "version takes no -n");
  EXPECT_EQ(ErrorOf({"explain", "j", "-A"}), "explain takes no -A");
}

TEST(ParseFlags, ValidateTakesANodeOrAProfile) {
  const auto node = ParseFlags({"validate", "n1", "--level=L2", "--wait"});
  ASSERT_TRUE(node);
  EXPECT_EQ(node->node, "n1");
  EXPECT_EQ(node->level, "L2");
  EXPECT_TRUE(node->wait);
  EXPECT_EQ(ParseFlags({"validate", "--profile", "f.yaml", "--dry-run"})->profile, "f.yaml");
  EXPECT_EQ(ErrorOf({"validate"}), "validate needs the name of a node, or --profile FILE");
  EXPECT_EQ(ErrorOf({"validate", "../n"}), "\"../n\" cannot be a node's name");
  EXPECT_EQ(ErrorOf({"validate", "n1", "--level", "L3"}), "unknown level \"L3\"; use L0, L1 or L2");
  EXPECT_EQ(ErrorOf({"validate", "n1", "--dry-run"}), "--dry-run needs --profile FILE");
  EXPECT_EQ(ErrorOf({"validate", "--profile", "f"}).substr(0, 46),
            "--profile tries a profile without a change: gi");
  EXPECT_EQ(ErrorOf({"nodes", "--wait"}), "nodes takes no --wait");
}

TEST(ParseFlags, ReplayTakesAFileAndNoCluster) {
  EXPECT_EQ(ParseFlags({"replay", "a/cycle-1.json"})->file, "a/cycle-1.json");
  EXPECT_EQ(ErrorOf({"replay"}), "replay needs the file of a recorded cycle");
  EXPECT_EQ(ErrorOf({"replay", "a", "b"}), "unexpected argument \"b\"");
  EXPECT_EQ(ErrorOf({"replay", "a", "-o", "json"}), "replay takes no -o");
  EXPECT_EQ(ErrorOf({"replay", "a", "-n", "x"}),
            "replay decides a recorded cycle, not a cluster's: leave out --kubeconfig, --context "
            "and -n");
  EXPECT_EQ(ErrorOf({"replay", "a", "--what-if"}), "replay takes no --what-if");
  EXPECT_NE(HelpText(Command::kReplay, "bimetal").find("usage: bimetal replay FILE"),
            std::string::npos);
}

TEST(ParseFlags, ANameCannotReachAnotherPath) {
  for (const char* name : {"..", "a/b", "Job", "", "a b", "a-", "-", "a\x1b"}) {
    EXPECT_NE(ErrorOf({"explain", name}), "accepted") << name;
    EXPECT_NE(ErrorOf({"jobs", "--namespace=" + std::string(name)}), "accepted") << name;
  }
  EXPECT_EQ(ErrorOf({"explain", "a.b-1"}), "accepted");
}

TEST(ProgramName, FollowsTheFile) {
  EXPECT_EQ(ProgramName("/usr/bin/bimetal"), "bimetal");
  EXPECT_EQ(ProgramName("/opt/kubectl-bimetal"), "kubectl bimetal");
  EXPECT_EQ(ProgramName("kubectl-bimetal"), "kubectl bimetal");
  EXPECT_EQ(ProgramName(""), "bimetal");
}

TEST(HelpText, NamesTheProgramAndTheOptionsOfTheCommand) {
  EXPECT_NE(HelpText(Command::kHelp, "kubectl bimetal").find("usage: kubectl bimetal COMMAND"),
            std::string::npos);
  EXPECT_NE(HelpText(Command::kJobs, "bimetal").find("-A, --all-namespaces"), std::string::npos);
  EXPECT_EQ(HelpText(Command::kNodes, "bimetal").find("--namespace"), std::string::npos);
}

}  // namespace
}  // namespace bimetal::cli
