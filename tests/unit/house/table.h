#pragma once

#include <string>
#include <vector>

// Who may use whom, as docs/explanation/architecture.md pictures it. This page is the rule; the
// tests beside it hold every #include and every CMake link against it.
namespace bimetal::house {

struct Room {
  std::string name;
  std::vector<std::string> may_use;  // rooms or folders of rooms, beside itself
};

inline const std::vector<Room> kRooms = {
    {"api", {}},
    {"core", {"api"}},
    {"kube", {"core/base", "api"}},
    {"operator", {"core", "kube", "api"}},
    {"agent", {"core/base", "core/model", "core/validation", "api"}},
    {"kernels", {}},
    {"workloads", {"kernels/device"}},
    // bimetal doctor diagnoses a machine without a cluster, by the agent's own rules.
    // bimetal explain --what-if decides on the snapshot that the operator would decide on.
    {"cli", {"core", "kube", "api", "agent/devices", "agent/diagnosis", "operator/state"}},
};

struct ThirdParty {
  std::string name;
  std::vector<std::string> includes;  // beginnings of header names
  std::vector<std::string> targets;   // beginnings of CMake target names
  std::vector<std::string> folders;   // where it may be used
};

inline const std::vector<ThirdParty> kThirdParty = {
    // The public types are Protobuf's.
    {"protobuf",
     {"google/protobuf/"},
     {"protobuf::"},
     {"api", "core/model", "kube", "operator", "agent", "cli"}},
    {"result type", {"tl/"}, {"tl::"}, {"core/base"}},

    {"cpprestsdk", {"cpprest/", "pplx/"}, {"cpprestsdk::"}, {"kube/transport"}},
    // cpprest hands its OpenSSL context over in Boost's wrapper.
    {"Boost", {"boost/"}, {"Boost::"}, {"kube/transport"}},
    {"OpenSSL", {"openssl/"}, {"OpenSSL::"}, {"operator/tls", "operator/agents", "kube/transport"}},
    {"simdjson", {"simdjson"}, {"simdjson::"}, {"kube/codec"}},
    // JSON is read with simdjson; it is put together with this.
    {"nlohmann json", {"nlohmann/"}, {"nlohmann_json::"}, {"kube/codec", "operator/pods"}},
    {"yaml-cpp", {"yaml-cpp/"}, {"yaml-cpp"}, {"kube/config", "operator/config", "agent/config"}},

    {"gRPC",
     {"grpc/", "grpcpp/"},  // and every *.grpc.pb.h
     {"gRPC::", "bimetal::api_agent_service"},
     {"operator/agents", "agent/kubelet", "agent/report"}},
    {"prometheus-cpp",
     {"prometheus/"},
     {"prometheus-cpp::"},
     {"operator/metrics", "agent/metrics"}},
    {"cpp-httplib",
     {"httplib.h"},
     {"httplib::", "PkgConfig::CPP_HTTPLIB"},
     {"operator/http", "workloads/serve"}},
    {"SQLite", {"sqlite3.h"}, {"SQLite::"}, {"operator/ledger"}},
    {"libpq", {"libpq-fe.h"}, {"PostgreSQL::"}, {"operator/ledger"}},

    // Vendor libraries are opened at run time and never linked.
    {"dlopen", {"dlfcn.h"}, {"${CMAKE_DL_LIBS}"}, {"agent/devices", "kernels/device"}},
    {"CUDA", {"cuda"}, {"CUDA::"}, {"kernels", "workloads"}},
    {"HIP", {"hip/"}, {"hip::"}, {"kernels", "workloads"}},

    {"GoogleTest", {"gtest/", "gmock/"}, {"GTest::"}, {}},
    {"threads of the system",
     {"pthread.h"},
     {"Threads::Threads"},
     {"kube", "operator", "agent", "kernels", "workloads", "cli"}},
};

// The domain library as a whole; who may use it may link it.
inline constexpr const char* kCoreLibrary = "core";
inline constexpr const char* kCoreLibraryFolder = "core/model";

// What core must not touch, so that the same code runs in the operator, in the simulator and in
// tests: threads, files, clocks, environment, randomness, unordered iteration.
struct Impure {
  std::string word;                 // a header or an identifier, as a whole word
  std::vector<std::string> except;  // files of core where it has a reason
};

inline const std::vector<Impure> kImpureInCore = {
    {"thread", {}},
    {"mutex", {}},
    {"shared_mutex", {}},
    {"condition_variable", {}},
    {"future", {}},
    {"atomic", {"core/base/log.cc"}},  // the log level
    {"fstream", {}},
    {"filesystem", {}},
    {"iostream", {}},
    {"chrono", {"core/base/time.cc"}},  // calendar arithmetic and the system's clock
    {"ctime", {}},
    {"random", {}},
    {"rand", {}},
    {"getenv", {}},
    {"fopen", {}},
    {"unordered_map", {}},
    {"unordered_set", {}},
    {"unordered_multimap", {}},
    {"unordered_multiset", {}},
};

// No floating point for money or capacity.
inline const std::vector<std::string> kIntegerFolders = {"core/cost", "core/queue",
                                                         "core/placement", "core/model"};

}  // namespace bimetal::house
