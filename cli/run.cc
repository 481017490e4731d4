#include "cli/run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "cli/doctor.h"
#include "cli/explain.h"
#include "cli/jobs.h"
#include "cli/live.h"
#include "cli/nodes.h"
#include "cli/replay.h"
#include "cli/validate.h"
#include "cli/what_if.h"
#include "kube/client/client.h"
#include "kube/transport/transport.h"

namespace bimetal::cli {
namespace {

struct Cluster {
  kube::Client client;
  std::string ns;  // the command line's, else the configuration's; "" for all
};

Result<Cluster> Connect(const CommandLine& line, const Surroundings& surroundings) {
  BIMETAL_TRY_ASSIGN(const kube::Config config, ReadConfig(line, surroundings));
  auto transport = kube::MakeTransport(config);
  if (!transport) {
    return tl::unexpected<Error>(WithContext(transport.error(), "cannot talk to " + config.server));
  }
  std::string ns = line.ns.empty() ? config.namespace_name : line.ns;
  if (line.all_namespaces) ns.clear();
  return Cluster{kube::Client(std::shared_ptr<kube::Transport>(std::move(*transport))),
                 std::move(ns)};
}

// The server's own bytes: nothing that this program does not know is lost.
Result<Answer> AsJson(kube::Client& client, const kube::ResourceInfo& info, const std::string& ns,
                      const std::string& name, const std::string& what) {
  kube::Request request;
  request.path_and_query = info.Path(ns, name) + "?pretty=true";
  BIMETAL_TRY_ASSIGN(std::string body, client.Raw(request, what));
  if (!body.ends_with('\n')) body += '\n';
  return Answer{std::move(body), {}};
}

Result<Answer> Nodes(const CommandLine& line, Cluster& cluster) {
  const kube::ResourceInfo& info = kube::InfoOf<api::GPUNode>();
  if (line.output == Output::kJson)
    return AsJson(cluster.client, info, "", "", "list gpunodes.bimetal.dev");
  BIMETAL_TRY_ASSIGN(auto nodes, cluster.client.ListAll<api::GPUNode>());
  if (nodes.items.empty()) {
    return Answer{{}, "no GPU nodes: no agent has reported a device yet"};
  }
  return Answer{RenderNodes(std::move(nodes.items)), {}};
}

Result<Answer> Jobs(const CommandLine& line, Cluster& cluster, const Clock& clock) {
  const kube::ResourceInfo& info = kube::InfoOf<api::GPUJob>();
  if (line.output == Output::kJson) {
    return AsJson(cluster.client, info, cluster.ns, "", "list gpujobs.bimetal.dev " + cluster.ns);
  }
  kube::ListOptions options;
  options.ns = cluster.ns;
  BIMETAL_TRY_ASSIGN(auto jobs, cluster.client.ListAll<api::GPUJob>(options));
  if (jobs.items.empty()) {
    return Answer{{},
                  cluster.ns.empty() ? "no GPU jobs in any namespace"
                                     : "no GPU jobs in namespace " + cluster.ns};
  }
  return Answer{RenderJobs(std::move(jobs.items), clock.Now()), {}};
}

Result<Answer> Explain(const CommandLine& line, Cluster& cluster, const Clock& clock) {
  if (line.output == Output::kJson) {
    return AsJson(cluster.client, kube::InfoOf<api::GPUJob>(), cluster.ns, line.job,
                  "get gpujobs.bimetal.dev " + cluster.ns + "/" + line.job);
  }
  BIMETAL_TRY_ASSIGN(const api::GPUJob job, cluster.client.Get<api::GPUJob>(cluster.ns, line.job));
  Answer answer{RenderExplain(job, clock.Now()), {}};
  if (!line.what_if) return answer;
  BIMETAL_TRY_ASSIGN(const LiveObjects live, ReadLive(cluster.client));
  const auto snapshot = SnapshotOf(live, clock.Now());
  const auto waiting =
      std::find_if(snapshot.pending.begin(), snapshot.pending.end(),
                   [&](const core::Job& one) { return one.uid.value == job.metadata().uid(); });
  if (waiting == snapshot.pending.end()) {
    answer.note = "the job does not wait for a place: there is nothing to try";
  } else {
    answer.out += RenderWhatIf(snapshot, *waiting);
  }
  return answer;
}

}  // namespace

Error WithRemedy(Error error, const CommandLine& line, std::string_view what,
                 const std::string& program) {
  switch (error.code) {
    case ErrorCode::kNotFound:
      if (line.command == Command::kExplain) {
        error.message += "; " + program + " jobs -A shows which jobs there are";
      } else if (!line.node.empty()) {
        error.message += "; " + program + " nodes shows which GPU nodes there are";
      } else if (line.profile.empty()) {
        error.message += "; is Bimetal installed on this cluster?";
      }
      break;
    case ErrorCode::kForbidden:
      error.message += "; ask an administrator for the right to " +
                       std::string(line.command == Command::kExplain    ? "get "
                                   : line.command == Command::kValidate ? "get and patch "
                                                                        : "list ") +
                       std::string(what) + ".bimetal.dev";
      break;
    case ErrorCode::kUnauthorized:
      error.message += "; the certificate or token of the kubeconfig is not accepted, renew it";
      break;
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadline:
      error.message += "; is the API server there, and is its address in the kubeconfig right?";
      break;
    case ErrorCode::kData:
      error.message +=
          "; this program and the cluster's CRDs may be of different versions, "
          "-o json shows what is there";
      break;
    default:
      break;
  }
  return error;
}

Result<Answer> RunCommand(const CommandLine& line, const Surroundings& surroundings,
                          const std::string& program, const Clock& clock) {
  if (line.command == Command::kHelp) return Answer{HelpText(line.topic, program), {}};
  if (line.command == Command::kVersion) {
    return Answer{line.output == Output::kJson ? "{\"version\":\"" BIMETAL_VERSION "\"}\n"
                                               : "bimetal " BIMETAL_VERSION "\n",
                  {}};
  }
  if (line.command == Command::kDoctor) {
    return RunDoctor(line, surroundings.terminal, ReadDevicesInProbe);
  }
  if (line.command == Command::kReplay) return RunReplay(line);
  BIMETAL_TRY_ASSIGN(Cluster cluster, Connect(line, surroundings));
  if (line.command == Command::kValidate) {
    Result<Answer> answer = line.profile.empty() ? Validate(line, cluster.client, clock)
                                                 : TryProfile(line, cluster.client, clock);
    if (answer) return answer;
    return tl::unexpected<Error>(WithRemedy(std::move(answer).error(), line, "gpunodes", program));
  }
  const bool nodes = line.command == Command::kNodes;
  Result<Answer> answer = nodes                            ? Nodes(line, cluster)
                          : line.command == Command::kJobs ? Jobs(line, cluster, clock)
                                                           : Explain(line, cluster, clock);
  if (answer) return answer;
  return tl::unexpected<Error>(
      WithRemedy(std::move(answer).error(), line, nodes ? "gpunodes" : "gpujobs", program));
}

}  // namespace bimetal::cli
