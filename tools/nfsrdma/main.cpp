// SPDX-License-Identifier: Apache-2.0
// The command line. The only file that knows CLI11.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "command.hpp"
#include "nfsrdma/version.hpp"
#include "program.hpp"
#include "report.hpp"

namespace cli {
namespace {

using Run = int (*)(const Call&);

struct Program {
  CLI::App app{
      "Files on an NFS server over RDMA, without a mount.\n"
      "URL: nfsrdma://HOST[:PORT]/PATH[?OPTION=VALUE&...], as in "
      "'nfsrdma://10.100.0.1/data/x?provider=iwarp&nconnect=4'; `nfsrdma options` lists the options."};
  Call call;
  bool verbose = false;
  Run run = nullptr;

  CLI::App* add(const std::string& name, const std::string& help, Run command) {
    CLI::App* sub = app.add_subcommand(name, help);
    sub->fallthrough();
    sub->footer("With every command: -o LIST mount options, --json, -v log lines on standard error");
    sub->callback([this, name, command] {
      call.command = name;
      run = command;
    });
    return sub;
  }
};

void add_reading(Program& p) {
  CLI::App* ls = p.add("ls", "List a directory, one name a line (those that begin with a dot too)", run_ls);
  ls->add_option("URL", p.call.many, "directories or files")->required();
  ls->add_flag("-l", p.call.long_list, "modes, owners, sizes and times");
  ls->add_flag("-d", p.call.directory_itself, "a directory or link itself, not what is in it");
  CLI::App* stat = p.add("stat", "Show what the server knows of a file", run_stat);
  stat->add_option("URL", p.call.many, "files")->required();
  stat->add_flag("-L", p.call.follow, "follow a symbolic link");
  CLI::App* cat = p.add("cat", "Write files to standard output", run_cat);
  cat->add_option("URL", p.call.many, "files")->required();
  CLI::App* get = p.add("get", "Copy a file from the server", run_get);
  get->add_option("URL", p.call.first, "what to copy")->required();
  get->add_option("LOCAL", p.call.second,
                  "file or directory here, - for standard output (default: this directory)");
  get->add_flag("-r", p.call.recursive, "a directory and all in it");
}

void add_writing(Program& p) {
  CLI::App* put = p.add("put", "Copy a file to the server; done when it is on stable storage there", run_put);
  put->add_option("LOCAL", p.call.first, "file here, - for standard input")->required();
  put->add_option("URL", p.call.second, "file, or directory that takes it under its name")->required();
  put->add_flag("-r", p.call.recursive, "a directory and all in it");
  CLI::App* mkdir = p.add("mkdir", "Make directories", run_mkdir);
  mkdir->add_option("URL", p.call.many, "directories")->required();
  mkdir->add_flag("-p", p.call.parents, "those above too; no error where one is there");
  mkdir->add_option("-m", p.call.mode, "octal mode")->type_name("MODE");
  CLI::App* rm = p.add("rm", "Remove files", run_rm);
  rm->add_option("URL", p.call.many, "files")->required();
  rm->add_flag("-r", p.call.recursive, "directories and all in them");
  rm->add_flag("-f", p.call.force, "no error where nothing is there");
  CLI::App* mv = p.add("mv", "Rename a file or directory", run_mv);
  mv->add_option("FROM", p.call.first, "URL")->required();
  mv->add_option("TO", p.call.second, "URL or path on the same server")->required();
  CLI::App* ln = p.add("ln", "Make a hard link, or with -s a symbolic one", run_ln);
  ln->add_option("TARGET", p.call.first, "URL of a file; with -s the text of the link")->required();
  ln->add_option("NAME", p.call.second, "URL of the new name")->required();
  ln->add_flag("-s", p.call.symbolic, "symbolic");
}

void add_telling(Program& p) {
  CLI::App* ping = p.add("ping", "Reach a server step by step, and say where it fails and why", run_ping);
  ping->add_option("URL", p.call.first, "server and path")->required();
  CLI::App* info = p.add("info", "Show sizes, session and connections as they were agreed", run_info);
  info->add_option("URL", p.call.first, "server and path")->required();
  CLI::App* options = p.add("options", "List the options of mounts and URLs", run_options);
  options->add_flag("--names", p.call.names_only, "names only");
  options->add_flag("--manual", p.call.manual_form, "as source of the manual page");
  p.add("version", "Show the program's version", run_version);
}

int parse_error(const Program& p, const CLI::ParseError& error) {
  std::string command;
  for (const CLI::App* sub : p.app.get_subcommands()) command = sub->get_name();
  if (!command.empty()) return usage(command, error.what());
  const std::vector<std::string> rest = p.app.remaining();
  if (!rest.empty() && !rest[0].starts_with('-')) return usage("", "there is no command \"" + rest[0] + "\"");
  if (rest.empty() && error.get_name() == "RequiredError") return usage("", "a command is missing");
  return usage("", error.what());
}

}  // namespace

int run(int argc, char** argv) {
  Program p;
  p.app.name("nfsrdma");
  p.app.require_subcommand(1);
  p.app.fallthrough();
  p.app.set_version_flag("--version", std::string("nfsrdma ") + nfsrdma::version_with_commit());
  p.app.add_flag("--json", p.call.json, "results as JSON on standard output");
  std::vector<std::string> lists;
  p.app.add_option("-o", lists, "mount options, on top of the URL's arguments")
      ->allow_extra_args(false)
      ->type_name("LIST");
  p.app.add_flag("-v", p.verbose, "log lines on standard error");
  add_reading(p);
  add_writing(p);
  add_telling(p);
  try {
    p.app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help, --version
    p.app.exit(wanted);
    return nfsrdma::program::finish_stdout("nfsrdma");
  } catch (const CLI::ParseError& error) {
    return parse_error(p, error);
  }
  for (const std::string& list : lists) p.call.options += (p.call.options.empty() ? "" : ",") + list;
  log_from(p.verbose ? nfsrdma::LogLevel::debug : nfsrdma::LogLevel::warn);
  return p.run(p.call);
}

}  // namespace cli

int main(int argc, char** argv) {
  nfsrdma::program::hold_standard_descriptors();
  return cli::run(argc, argv);
}
