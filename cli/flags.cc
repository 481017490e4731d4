#include "cli/flags.h"

#include <algorithm>
#include <optional>

namespace bimetal::cli {
namespace {

struct CommandInfo {
  Command command;
  std::string_view name;
};

constexpr CommandInfo kCommands[] = {
    {Command::kNodes, "nodes"},       {Command::kJobs, "jobs"},     {Command::kExplain, "explain"},
    {Command::kValidate, "validate"}, {Command::kReplay, "replay"}, {Command::kDoctor, "doctor"},
    {Command::kVersion, "version"},   {Command::kHelp, "help"}};

constexpr const char* kKnown =
    "use nodes, jobs, explain, validate, replay, doctor, version or help";

tl::unexpected<Error> Wrong(std::string message) {
  return Fail(ErrorCode::kInvalid, std::move(message));
}

std::optional<Command> CommandOf(std::string_view name) {
  for (const CommandInfo& info : kCommands) {
    if (info.name == name) return info.command;
  }
  return std::nullopt;
}

std::string_view NameOf(Command command) {
  return std::find_if(std::begin(kCommands), std::end(kCommands),
                      [&](const CommandInfo& info) { return info.command == command; })
      ->name;
}

// A name as Kubernetes gives them, so that it can be part of a path and of nothing else.
bool IsObjectName(std::string_view name) {
  const auto inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  const auto outer = [&](char c) { return inner(c) && c != '-' && c != '.'; };
  return !name.empty() && name.size() <= 253 && outer(name.front()) && outer(name.back()) &&
         std::all_of(name.begin(), name.end(), inner);
}

class Parser {
 public:
  explicit Parser(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  Result<CommandLine> Parse() {
    while (next_ < arguments_.size()) {
      const std::string& argument = arguments_[next_++];
      if (argument.size() > 1 && argument[0] == '-') {
        BIMETAL_TRY(Option(argument));
      } else {
        words_.push_back(argument);
      }
    }
    BIMETAL_TRY(Words());
    if (out_.command == Command::kHelp) return out_;
    BIMETAL_TRY(CheckOptions());
    return out_;
  }

 private:
  Status Option(const std::string& argument) {
    // --name=value, -n=value, -nvalue.
    std::string name = argument;
    std::optional<std::string> value;
    if (argument.starts_with("--")) {
      if (const std::size_t sign = argument.find('='); sign != std::string::npos) {
        name = argument.substr(0, sign);
        value = argument.substr(sign + 1);
      }
    } else if (argument.size() > 2) {
      name = argument.substr(0, 2);
      value = argument.substr(argument[2] == '=' ? 3 : 2);
    }
    if (name == "-h" || name == "--help") return Switch(name, value, &help_);
    if (name == "--version") return Switch(name, value, &version_);
    if (name == "-A" || name == "--all-namespaces") {
      return Switch(name, value, &out_.all_namespaces);
    }
    if (name == "--what-if") return Switch(name, value, &out_.what_if);
    if (name == "--wait") return Switch(name, value, &out_.wait);
    if (name == "--dry-run") return Switch(name, value, &dry_run_);
    if (name == "--level") return Take(name, value, &out_.level);
    if (name == "--profile") return Take(name, value, &out_.profile);
    if (name == "--kubeconfig") return Take(name, value, &out_.kubeconfig);
    if (name == "--context") return Take(name, value, &out_.context);
    if (name == "-n" || name == "--namespace") return Take(name, value, &out_.ns);
    if (name == "--root") return Take(name, value, &out_.root);
    if (name == "--color") return Take(name, value, &color_);
    if (name == "-o" || name == "--output") return Take(name, value, &output_);
    return Wrong("unknown option " + name);
  }

  static Status Switch(const std::string& name, const std::optional<std::string>& value,
                       bool* out) {
    if (value) return Wrong("option " + name + " takes no value");
    *out = true;
    return {};
  }

  Status Take(const std::string& name, const std::optional<std::string>& value, std::string* out) {
    if (value) {
      *out = *value;
    } else if (next_ < arguments_.size()) {
      *out = arguments_[next_++];
    } else {
      out->clear();
    }
    if (out->empty()) return Wrong("option " + name + " needs a value");
    return {};
  }

  Status Words() {
    if (version_ && words_.empty()) words_.emplace_back("version");
    if (words_.empty()) {
      if (!help_) return Wrong(std::string("no command given; ") + kKnown);
      return {};
    }
    const auto command = CommandOf(words_[0]);
    if (!command) return Wrong("unknown command \"" + words_[0] + "\"; " + kKnown);
    if (help_) {
      out_.topic = *command;
      return {};
    }
    out_.command = *command;
    if (*command == Command::kHelp && words_.size() == 2) {
      const auto topic = CommandOf(words_[1]);
      if (!topic) return Wrong("unknown command \"" + words_[1] + "\"; " + kKnown);
      out_.topic = *topic;
      return {};
    }
    if (*command == Command::kExplain) {
      if (words_.size() < 2) return Wrong("explain needs the name of a job");
      out_.job = words_[1];
      if (!IsObjectName(out_.job)) return Wrong("\"" + out_.job + "\" cannot be a job's name");
    }
    if (*command == Command::kValidate && words_.size() > 1) {
      out_.node = words_[1];
      if (!IsObjectName(out_.node)) return Wrong("\"" + out_.node + "\" cannot be a node's name");
    }
    if (*command == Command::kReplay) {
      if (words_.size() < 2) return Wrong("replay needs the file of a recorded cycle");
      out_.file = words_[1];
    }
    const bool named = *command == Command::kExplain || *command == Command::kValidate ||
                       *command == Command::kReplay;
    const std::size_t wanted = named ? 2 : 1;
    if (words_.size() > wanted) return Wrong("unexpected argument \"" + words_[wanted] + "\"");
    return {};
  }

  Status CheckOptions() {
    const std::string name(NameOf(out_.command));
    if (output_ == "json") {
      out_.output = Output::kJson;
    } else if (!output_.empty() && output_ != "table") {
      return Wrong("unknown output \"" + output_ + "\"; use table or json");
    }
    if (out_.what_if && out_.command != Command::kExplain) {
      return Wrong(name + " takes no --what-if");
    }
    if (out_.what_if && out_.output == Output::kJson) {
      return Wrong("--what-if is shown as a table: leave out -o json");
    }
    BIMETAL_TRY(CheckDoctor(name));
    BIMETAL_TRY(CheckReplay());
    BIMETAL_TRY(CheckValidate(name));
    if (out_.all_namespaces && out_.command != Command::kJobs) {
      return Wrong(name + " takes no -A");
    }
    if (out_.all_namespaces && !out_.ns.empty()) {
      return Wrong("-A and -n exclude each other; give one of them");
    }
    if (out_.ns.empty()) return {};
    if (out_.command == Command::kNodes) {
      return Wrong("nodes takes no -n: nodes belong to no namespace");
    }
    if (out_.command == Command::kVersion) return Wrong("version takes no -n");
    if (!IsObjectName(out_.ns)) return Wrong("\"" + out_.ns + "\" cannot be a namespace");
    return {};
  }

  // A node, or a profile to be tried: one of the two.
  Status CheckValidate(const std::string& name) {
    if (out_.command != Command::kValidate) {
      if (out_.wait) return Wrong(name + " takes no --wait");
      if (dry_run_) return Wrong(name + " takes no --dry-run");
      if (!out_.level.empty()) return Wrong(name + " takes no --level");
      if (!out_.profile.empty()) return Wrong(name + " takes no --profile");
      return {};
    }
    if (!out_.ns.empty()) return Wrong("validate takes no -n: nodes belong to no namespace");
    if (!output_.empty()) return Wrong("validate takes no -o");
    if (!out_.profile.empty()) {
      if (!dry_run_) {
        return Wrong(
            "--profile tries a profile without a change: give --dry-run, too; kubectl apply makes "
            "it real");
      }
      if (!out_.node.empty() || out_.wait || !out_.level.empty()) {
        return Wrong("--profile takes neither a node nor --wait or --level");
      }
      return {};
    }
    if (dry_run_) return Wrong("--dry-run needs --profile FILE");
    if (out_.node.empty()) return Wrong("validate needs the name of a node, or --profile FILE");
    if (!out_.level.empty() && out_.level != "L0" && out_.level != "L1" && out_.level != "L2") {
      return Wrong("unknown level \"" + out_.level + "\"; use L0, L1 or L2");
    }
    return {};
  }

  // --root and --color are the doctor's, and the doctor asks no cluster.
  Status CheckDoctor(const std::string& name) {
    if (out_.command != Command::kDoctor) {
      if (!out_.root.empty()) return Wrong(name + " takes no --root");
      if (!color_.empty()) return Wrong(name + " takes no --color");
      return {};
    }
    if (!out_.kubeconfig.empty() || !out_.context.empty() || !out_.ns.empty()) {
      return Wrong(
          "doctor looks at a machine, not at a cluster: leave out --kubeconfig, --context "
          "and -n");
    }
    if (color_ == "always") {
      out_.color = Color::kAlways;
    } else if (color_ == "never") {
      out_.color = Color::kNever;
    } else if (!color_.empty() && color_ != "auto") {
      return Wrong("unknown colour \"" + color_ + "\"; use auto, always or never");
    }
    return {};
  }

  Status CheckReplay() {
    if (out_.command != Command::kReplay) return {};
    if (!out_.kubeconfig.empty() || !out_.context.empty() || !out_.ns.empty()) {
      return Wrong(
          "replay decides a recorded cycle, not a cluster's: leave out --kubeconfig, --context and "
          "-n");
    }
    if (!output_.empty()) return Wrong("replay takes no -o");
    return {};
  }

  const std::vector<std::string>& arguments_;
  std::size_t next_ = 0;
  std::vector<std::string> words_;
  bool help_ = false;
  bool version_ = false;
  std::string output_;
  std::string color_;
  bool dry_run_ = false;
  CommandLine out_;
};

constexpr std::string_view kConnection =
    R"(  --kubeconfig FILE       the cluster; else $KUBECONFIG, else ~/.kube/config, else the pod's own account
  --context NAME          a context of that file; else its current one
)";
constexpr std::string_view kNamespace =
    R"(  -n, --namespace NAME    else the context's namespace, else default
)";
constexpr std::string_view kOutput =
    R"(  -o, --output FORMAT     table (default), or json: the objects as the API server gives them
)";

}  // namespace

Result<CommandLine> ParseFlags(const std::vector<std::string>& arguments) {
  return Parser(arguments).Parse();
}

std::string ProgramName(std::string_view argv0) {
  const std::string_view file = argv0.substr(argv0.rfind('/') + 1);
  return file == "kubectl-bimetal" ? "kubectl bimetal" : "bimetal";
}

std::string HelpText(Command topic, const std::string& program) {
  std::string text;
  switch (topic) {
    case Command::kNodes:
      text = "Shows every GPU node: whether jobs may use it, and why not.\n\nusage: " + program +
             " nodes [options]\n\n";
      return text.append(kConnection).append(kOutput);
    case Command::kJobs:
      text =
          "Shows the GPU jobs of a namespace: where they are, what they hold and cost.\n\nusage: " +
          program + " jobs [options]\n\n";
      return text.append(kNamespace)
          .append("  -A, --all-namespaces    the jobs of all namespaces\n")
          .append(kOutput)
          .append(kConnection);
    case Command::kExplain:
      text =
          "Shows why a GPU job is where it is: what each variant lacks and what would help, its\n"
          "place in the queue, its attempts and what they cost.\n\nusage: " +
          program + " explain JOB [options]\n\n";
      return text
          .append(
              "      --what-if           what each variant alone, the other vendor and a smaller\n"
              "                          gang would get now; reads nodes and pods of all "
              "namespaces\n")
          .append(kNamespace)
          .append(kOutput)
          .append(kConnection);
    case Command::kValidate:
      text =
          "Has a node's devices validated again, also out of quarantine: sets the GPUNode's\n"
          "spec.revalidate. With a profile: shows what it would change, and changes nothing.\n\n"
          "usage: " +
          program + " validate NODE [options]\n       " + program +
          " validate --profile FILE --dry-run [options]\n\n" +
          R"(      --level L0|L1|L2    at least this level, never less than the profile's
      --wait              until there is a verdict; exit status 1 unless the node is Admitted
      --profile FILE      a ValidationProfile as YAML or JSON
      --dry-run           show which nodes would be run again or judged otherwise
)";
      return text.append(kConnection);
    case Command::kReplay:
      return "Decides a recorded scheduling cycle again, without any cluster, and compares the "
             "plan "
             "with\n"
             "the recorded one byte by byte: prints \"same\", or the first difference. The "
             "operator "
             "records\n"
             "cycles where its configuration has scheduler.recordFolder.\n\nusage: " +
             program +
             " replay FILE\n\n"
             "exit status: 0 the same, 1 different, 2 FILE is no recorded cycle, 64 a wrong "
             "command "
             "line\n";
    case Command::kDoctor:
      return "Looks at this machine, without any cluster: which GPUs it has, what is wrong with "
             "them\n"
             "and with the software under them, and what to do. Run it as root to see "
             "everything.\n\nusage: " +
             program + " doctor [options]\n\n" +
             R"(  --root DIR              the folder that holds the machine's file tree; / by default
  -o, --output FORMAT     table (default) or json
  --color WHEN            auto (default: on a terminal without NO_COLOR), always or never

exit status: 0 nothing is wrong, 1 a warning or worse, 2 it could not look, 64 a wrong command line
)";
    case Command::kVersion:
      return "Shows the version of this program.\n\nusage: " + program +
             " version [-o table|json]\n";
    case Command::kHelp:
      break;
  }
  return "Shows what Bimetal knows of a cluster's GPU nodes and jobs. It changes nothing but what\n"
         "validate asks for.\n\nusage: " +
         program + " COMMAND [options]\n\n" +
         R"(  nodes          every GPU node: whether jobs may use it, and why not
  jobs           the GPU jobs of a namespace
  explain JOB    why a job is where it is, and what would help
  validate NODE  have a node's devices validated again; or try a profile
  replay FILE    decide a recorded scheduling cycle again; needs no cluster
  doctor         what is wrong with the GPUs of this machine; needs no cluster
  version        the version of this program
  help COMMAND   the options of a command

exit status: 0 success, 1 an error, 64 a wrong command line
)";
}

}  // namespace bimetal::cli
