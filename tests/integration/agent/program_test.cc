// The agent as a program, on simulated machines with both vendors' readers.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/agent/fake_kubelet.h"
#include "tests/integration/agent/fake_operator.h"
#include "tests/integration/agent/support.h"

namespace bimetal::agent {
namespace {

using ::testing::HasSubstr;

constexpr char kName[] = "bimetal-operator.test.svc";

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string Program(const std::string& name) {
  return Environment("BIMETAL_BINARY_DIR") + "/bin/" + name;
}

// A child process whose output goes to a file; killed at the end if it still runs.
class Child {
 public:
  Child(std::vector<std::string> argv, const std::string& output,
        const std::string& node_name = "n1") {
    std::vector<char*> words;
    for (auto& word : argv) words.push_back(word.data());
    words.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    const int out = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    if (node_name.empty()) {
      unsetenv("NODE_NAME");
    } else {
      setenv("NODE_NAME", node_name.c_str(), 1);
    }
    execv(words[0], words.data());
    _exit(127);
  }
  ~Child() {
    if (pid_ > 0 && !ended_) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void Signal(int number) const { kill(pid_, number); }
  // The exit status; -1 where it was killed or does not end in time.
  int Wait() {
    int status = 0;
    const bool done = Eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; });
    ended_ = done;
    return done && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  bool ended_ = false;
};

class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Environment("BIMETAL_BINARY_DIR").empty()) {
      GTEST_SKIP() << "BIMETAL_BINARY_DIR is not set; run this by ctest";
    }
  }

  // Exit status of the agent with these arguments; its output is in out().
  int Run(const std::vector<std::string>& arguments, const std::string& node_name = "n1") {
    std::vector<std::string> argv = {Program("bimetal-agent")};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return Child(argv, folder_ / "out", node_name).Wait();
  }
  std::string out() const { return ReadFile(folder_ / "out"); }

  int Machine(const std::vector<std::string>& arguments) {
    std::vector<std::string> argv = {Program("bimetal-machine")};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return Child(argv, folder_ / "machine-out").Wait();
  }

  std::string WriteConfig(const std::string& address) {
    const std::string file = folder_ / "agent.yaml";
    WriteFile(file, "operator: {address: '" + address + "', tlsServerName: " + kName +
                        ", caFile: " + (folder_ / "ca.crt") +
                        ", tokenFile: " + (folder_ / "token") + "}\nroot: " + (folder_ / "host") +
                        "\nstateDir: " + (folder_ / "state") +
                        "\nsocket: " + (folder_ / "agent.sock") +
                        "\nkubelet: {devicePluginDir: " + (folder_ / "device-plugins") +
                        "}\nreport: {interval: 1s, enumerateInterval: 1s}\n"
                        "metrics: {listen: '127.0.0.1:0'}\n");
    return file;
  }

  TempFolder folder_;
};

TEST_F(ProgramTest, TellsItsVersionAndItsFlags) {
  EXPECT_EQ(Run({"--version"}), 0);
  EXPECT_THAT(out(), HasSubstr("bimetal-agent "));
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(out(), HasSubstr("--config FILE"));
}

TEST_F(ProgramTest, WrongCallsNameWhatIsWrong) {
  EXPECT_EQ(Run({}), 64);
  EXPECT_THAT(out(), HasSubstr("--config FILE is missing"));
  EXPECT_EQ(Run({"--colour"}), 64);
  EXPECT_THAT(out(), HasSubstr("--colour"));
  EXPECT_EQ(Run({"--config", "/nowhere"}), 1);
  EXPECT_THAT(out(), HasSubstr("/nowhere"));
  EXPECT_EQ(Run({"--config", WriteConfig("127.0.0.1:1")}, ""), 1);
  EXPECT_THAT(out(), HasSubstr("NODE_NAME is not set"));
}

TEST_F(ProgramTest, ServesASimulatedMachineOfBothVendors) {
  const std::string description =
      Environment("BIMETAL_SOURCE_DIR") + "/tests/machines/mixed-h100-4-mi300x-4.yaml";
  ASSERT_EQ(Machine({"build", description, folder_ / "host", "--node", "n1"}), 0)
      << ReadFile(folder_ / "machine-out");
  const auto certificates = MakeCertificates(folder_ / "tls", kName);
  WriteFile(folder_ / "ca.crt", certificates.ca_pem);
  WriteFile(folder_ / "token", "secret-token-text");
  // Opens whatever it is told of.
  FakeOperator op(certificates, [](const FakeCall& call) {
    FakeAnswer answer;
    answer.reply.set_accepted_seq(call.request.seq());
    for (const auto& stack : call.request.inventory().stacks()) {
      auto* order = answer.reply.add_orders();
      order->set_vendor(stack.vendor());
      order->set_serve_device_plugin(true);
      order->set_resource_name(stack.vendor() + ".com/gpu");
      order->set_open_fingerprint(stack.fingerprint());
      for (const auto& device : call.request.inventory().devices()) {
        if (device.vendor() == stack.vendor()) order->add_open_devices(device.id());
      }
    }
    return answer;
  });
  const FakeKubelet kubelet(folder_ / "device-plugins");
  Child agent({Program("bimetal-agent"), "--config", WriteConfig(op.address())}, folder_ / "out");
  const auto four_open = [](const FakeResource& resource) {
    return std::count_if(resource.health.begin(), resource.health.end(),
                         [](const auto& entry) { return entry.second == "Healthy"; }) == 4;
  };
  EXPECT_TRUE(kubelet.WaitFor("amd.com/gpu", four_open)) << out();
  EXPECT_TRUE(kubelet.WaitFor("nvidia.com/gpu", four_open)) << out();
  const auto request = op.calls().back().request;
  EXPECT_EQ(request.inventory().devices_size(), 8);
  EXPECT_TRUE(request.inventory().simulated());
  const std::string id = kubelet.resource("nvidia.com/gpu").health.begin()->first;
  EXPECT_EQ(kubelet.Allocate("nvidia.com/gpu", {id}).environment.at("BIMETAL_SIMULATED"), "1");

  const auto before = std::chrono::steady_clock::now();
  agent.Signal(SIGTERM);
  EXPECT_EQ(agent.Wait(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(2));
  EXPECT_THAT(out(), ::testing::Not(HasSubstr("secret-token-text")));
}

}  // namespace
}  // namespace bimetal::agent
