// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "nfsrdma/version.hpp"

namespace nfsrdma::serve {
namespace {

constexpr const char* description =
    "Exports DIR as / over NFSv4.1 on RPC-over-RDMA.\n"
    "Prints one line, 'ready URL', when clients can come; everything else goes to stderr. SIGTERM ends it.";

void add_limits(CLI::App& app, Options& o) {
  app.add_option("--threads", o.threads, "Threads that serve connections (default: one per core, at most 4)")
      ->check(CLI::Range(0u, 256u));
  app.add_option("--workers", o.workers, "Threads for file calls that may block (default: 2 per core, at least 4)")
      ->check(CLI::Range(0u, 1024u));
  app.add_option("--spin", o.spin_us, "Microseconds to poll before sleeping; worth it where a core is free")
      ->check(CLI::Range(0u, 10000u));
  app.add_option("--memory", o.memory_mib, "MiB of registered buffers at most (default 256)")
      ->check(CLI::Range(16u, 1u << 20));
  app.add_option("--max-clients", o.clients_max, "Client records at most (default 1024)")->check(CLI::Range(1u, 1u << 20));
  app.add_option("--max-sessions", o.sessions_max, "Sessions at most (default 2048)")->check(CLI::Range(1u, 1u << 20));
  app.add_option("--max-connections", o.connections_max, "Connections at most (default 1024)")
      ->check(CLI::Range(1u, 1u << 20));
  app.add_option("--slots", o.slots, "Calls of one session, and of one connection, at once (default 64)")
      ->check(CLI::Range(1u, 1024u));
}

void add_options(CLI::App& app, Options& o) {
  app.add_option("DIR", o.directory, "Directory to export")->required();
  app.add_option("--listen", o.listen, "ADDR:PORT (default 127.0.0.1:20049); port 0 takes any free one")
      ->type_name("ADDR:PORT");
  app.add_option("--provider", o.provider, "iwarp (TCP sockets, no device needed) or verbs (an RDMA device)")
      ->check(CLI::IsMember({"iwarp", "verbs", "tcp"}))
      ->type_name("NAME");
  app.add_flag("--crc", o.crc, "Ask for CRC32C (provider iwarp); it is used anyway when the client asks");
  app.add_flag("--read-only", o.read_only, "Refuse every change");
  app.add_flag("!--no-root-squash", o.root_squash, "Let a client's root act as root here");
  app.add_flag("--async", o.async, "Answer changes of names and attributes before they are on stable storage");
  app.add_option("--lease", o.lease_s, "Seconds that a silent client keeps its state (default 90)")
      ->check(CLI::Range(1u, 3600u));
  app.add_option("--grace", o.grace_s, "Seconds after a restart that clients have to reclaim (default: the lease)")
      ->check(CLI::Range(1u, 3600u));
  app.add_option("--state-dir", o.state_dir, "Where to remember clients and file handles over a restart")
      ->type_name("DIR");
  app.add_option("--delegations", o.delegations, "none, read (default) or write")
      ->check(CLI::IsMember({"none", "read", "write"}));
  app.add_option("--fault", o.fault, "Misbehave, for tests of clients: KEY=VALUE,...")
      ->type_name("PLAN");
  app.add_flag("-v,--verbose", o.verbosity, "Say more (twice: everything)");
  add_limits(app, o);
}

}  // namespace

Parsed parse_options(int argc, char** argv, Options& options) {
  CLI::App app(description, "nfsrdma-serve");
  app.set_version_flag("--version", std::string("nfsrdma-serve ") + version_with_commit());
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    app.exit(e);
    return Parsed::done;
  } catch (const CLI::CallForVersion& e) {
    app.exit(e);
    return Parsed::done;
  } catch (const CLI::ParseError& e) {
    std::fprintf(stderr, "nfsrdma-serve: %s (--help tells more)\n", e.what());
    return Parsed::usage;
  }
  return Parsed::run;
}

}  // namespace nfsrdma::serve
