#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace bimetal::agent {

// One resource as a kubelet sees it.
struct FakeResource {
  int registrations = 0;                      // of this kubelet's life
  int lists = 0;                              // messages of ListAndWatch
  std::map<std::string, std::string> health;  // by device id
};

// What Allocate gave, or the error.
struct FakeAllocation {
  std::string error;
  std::map<std::string, std::string> environment;
  std::vector<std::string> device_files;
};

// A kubelet's side of the device-plugin API in a folder: takes registrations, dials back at once as
// the real one does, and keeps the latest list. Thread-safe.
class FakeKubelet {
 public:
  explicit FakeKubelet(std::string folder);
  ~FakeKubelet();
  FakeKubelet(const FakeKubelet&) = delete;
  FakeKubelet& operator=(const FakeKubelet&) = delete;

  // As a kubelet does: forgets all, deletes every file of the folder, serves anew.
  void Restart();
  // Ends the streams to the plug-ins, but stays.
  void DropStreams();

  FakeResource resource(const std::string& name) const;
  // Waits until the resource fulfils `condition`; false where it does not within 30 s.
  bool WaitFor(const std::string& name,
               const std::function<bool(const FakeResource&)>& condition) const;
  bool WaitForHealth(const std::string& name,
                     const std::map<std::string, std::string>& health) const;

  FakeAllocation Allocate(const std::string& name, const std::vector<std::string>& ids) const;

 private:
  class Impl;
  const std::string folder_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bimetal::agent
