// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "nfsrdma/version.hpp"
#include "program.hpp"

namespace nfsrdma::serve {
namespace {

constexpr const char* description =
    "Exports DIR as / over NFSv4.1 on RPC-over-RDMA.\n"
    "Prints one line, 'ready URL', when clients can come; everything else goes to stderr. SIGTERM ends it.";

// The range stands in the text of a refusal; in the help it would hide what the option is for.
void add_number(CLI::App& app, const char* name, uint32_t& value, uint32_t lowest, uint32_t highest, const char* help,
                const char* unit = "N") {
  app.add_option(name, value, help)->check(CLI::Range(lowest, highest).description(""))->type_name(unit);
}

CLI::Validator one_of(const std::vector<std::string>& words) { return CLI::IsMember(words).description(""); }

void add_limits(CLI::App& app, Options& o) {
  add_number(app, "--threads", o.threads, 0, 256, "Threads that serve connections (default: one per core, at most 4)");
  add_number(app, "--workers", o.workers, 0, 1024,
             "Threads for file calls that may block (default: 2 per core, at least 4)");
  add_number(app, "--spin", o.spin_us, 0, 10000, "Microseconds to poll before sleeping; worth it where a core is free",
             "MICROSECONDS");
  add_number(app, "--memory", o.memory_mib, 16, 1u << 20, "MiB of registered buffers at most (default 256)", "MIB");
  add_number(app, "--max-clients", o.clients_max, 1, 1u << 20, "Client records at most (default 1024)");
  add_number(app, "--max-sessions", o.sessions_max, 1, 1u << 20, "Sessions at most (default 2048)");
  add_number(app, "--max-connections", o.connections_max, 1, 1u << 20, "Connections at most (default 1024)");
  add_number(app, "--slots", o.slots, 1, 1024, "Calls of one session, and of one connection, at once (default 64)");
}

void add_options(CLI::App& app, Options& o) {
  app.add_option("DIR", o.directory, "Directory to export")->required();
  app.add_option("--listen", o.listen, "ADDR:PORT (default 127.0.0.1:20049); port 0 takes any free one")
      ->type_name("ADDR:PORT");
  app.add_option("--provider", o.provider, "iwarp (TCP sockets, no device needed) or verbs (an RDMA device)")
      ->check(one_of({"iwarp", "verbs", "tcp"}))
      ->type_name("NAME");
  app.add_flag("--crc", o.crc, "Ask for CRC32C (provider iwarp); it is used anyway when the client asks");
  app.add_flag("--read-only", o.read_only, "Refuse every change");
  app.add_flag_callback("--no-root-squash", [&o] { o.root_squash = false; }, "Let a client's root act as root here");
  app.add_flag("--async", o.async, "Answer changes of names and attributes before they are on stable storage");
  add_number(app, "--lease", o.lease_s, 1, 3600, "How long a silent client keeps its state (default 90)", "SECONDS");
  CLI::Option* state_dir =
      app.add_option("--state-dir", o.state_dir, "Where to remember clients and file handles over a restart");
  state_dir->type_name("DIR");
  add_number(app, "--grace", o.grace_s, 1, 3600,
             "How long after a restart clients have to reclaim, with --state-dir (default: the lease)", "SECONDS");
  app.get_option("--grace")->needs(state_dir);
  app.add_option("--delegations", o.delegations, "none, read (default) or write")
      ->check(one_of({"none", "read", "write"}))
      ->type_name("KIND");
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
    program::print_error("nfsrdma-serve", std::string(e.what()) + " (--help tells more)");
    return Parsed::usage;
  }
  return Parsed::run;
}

}  // namespace nfsrdma::serve
