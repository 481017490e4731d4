#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/devices/source.h"

namespace bimetal::agent {

// One record of the kernel log that tells of trouble with a GPU.
struct KernelEvent {
  // A finding's code (rules.csv), or in lower case the name of a fact; empty for an Xid that asks
  // for nothing.
  std::string code;
  std::optional<Vendor> vendor;  // nothing: a message of the bus
  // 0000:18:00.0; NVIDIA prints no function: 0 is assumed. Empty: the record names no address.
  std::string pci_address;
  std::string pci_id;   // KFD names a device by vendor and device, 1002:67ef; else empty
  int xid = 0;          // NVIDIA; 0: it is no Xid
  std::string text;     // the message, without the log's prefixes
  std::string remedy;   // where the record or the table of Xids tells one; else empty
  std::string key;      // unique within this boot: the record's sequence number, or a hash of it
  double seconds = -1;  // since boot; -1: the record does not tell
};

// A record in any of the known forms (/dev/kmsg, dmesg with seconds or dates, syslog, bare).
// Nothing where it tells of no GPU trouble.
std::optional<KernelEvent> ParseKernelLine(std::string_view line);

// The records of a log: lines, with those that a driver wrote as one message joined into one line,
// whether the log kept them apart, escaped the line breaks (#012, \x0a) or not.
std::vector<std::string> KernelRecords(std::string_view log);

// Facts of a log by name (key_rejected), each with the newest record that shows it.
std::map<std::string, std::string> KernelFacts(std::string_view log);

// The findings of a log, newest event per device and kind, at most 64, the gravest first, with what
// rules.csv says of their codes. `devices` translate PCI addresses into ids; an address without a
// device stays, but for messages of the bus, which are then of no GPU. GpuResetHung: a reset that
// began two minutes or more before the log's last record and did not end.
std::vector<Finding> KernelFindings(std::string_view log, const std::vector<Device>& devices);

// A row of data/kernel_lines.csv.
struct KernelLineRule {
  std::string code;
  std::optional<Vendor> vendor;
  std::string driver;
  std::vector<std::string> pieces;  // in this order in the record
  std::vector<std::string> unless;
};

// Reads a table of that form; lines that do not fit are left out. For tests.
std::vector<KernelLineRule> ParseKernelLineRules(std::string_view csv);
std::string_view KernelLinesCsv();

}  // namespace bimetal::agent
