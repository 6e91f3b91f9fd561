// SPDX-License-Identifier: Apache-2.0
// The operations. Each appends its own result and returns ok, or returns the status of its failure, which the
// executor appends. Coroutines may come back on a thread of the store.
#pragma once

#include "nfs4/op_table.hpp"
#include "server/compound.hpp"

namespace nfsrdma::server {

using io::Task;

// ops_session.cpp
Status op_exchange_id(Compound& c, const nfs4::ExchangeIdArgs& args);
Status op_create_session(Compound& c, const nfs4::CreateSessionArgs& args);
Status op_destroy_session(Compound& c, const nfs4::DestroySessionArgs& args);
Status op_destroy_clientid(Compound& c, const nfs4::DestroyClientidArgs& args);
Status op_bind_conn(Compound& c, const nfs4::BindConnToSessionArgs& args);
Status op_backchannel_ctl(Compound& c, const nfs4::BackchannelCtlArgs& args);
Status op_sequence(Compound& c, const nfs4::SequenceArgs& args);
Task<Status> op_reclaim_complete(Compound& c, const nfs4::ReclaimCompleteArgs& args);

// ops_handle.cpp
Status op_putrootfh(Compound& c);
Status op_putpubfh(Compound& c);
Task<Status> op_putfh(Compound& c, const nfs4::PutfhArgs& args);
Status op_getfh(Compound& c);
Status op_savefh(Compound& c);
Status op_restorefh(Compound& c);
Task<Status> op_lookup(Compound& c, const nfs4::LookupArgs& args);
Task<Status> op_lookupp(Compound& c);
Task<Status> op_readlink(Compound& c);
Task<Status> op_secinfo(Compound& c, const nfs4::SecinfoArgs& args);
Task<Status> op_secinfo_no_name(Compound& c, const nfs4::SecinfoNoNameArgs& args);

// ops_attr.cpp
Task<Status> op_access(Compound& c, const nfs4::AccessArgs& args);
Task<Status> op_getattr(Compound& c, const nfs4::GetattrArgs& args);
Task<Status> op_setattr(Compound& c, const nfs4::SetattrArgs& args);
Task<Status> op_verify(Compound& c, const nfs4::Fattr& wanted, bool same_wanted);

// ops_io.cpp
Task<Status> op_read(Compound& c, const nfs4::ReadArgs& args);
Task<Status> op_write(Compound& c, const nfs4::WriteArgs& args);
Task<Status> op_commit(Compound& c, const nfs4::CommitArgs& args);

// ops_dir.cpp
Task<Status> op_create(Compound& c, const nfs4::CreateArgs& args);
Task<Status> op_remove(Compound& c, const nfs4::RemoveArgs& args);
Task<Status> op_rename(Compound& c, const nfs4::RenameArgs& args);
Task<Status> op_link(Compound& c, const nfs4::LinkArgs& args);
Task<Status> op_readdir(Compound& c, const nfs4::ReaddirArgs& args);

// ops_open.cpp
Task<Status> op_open(Compound& c, const nfs4::OpenArgs& args);
Status op_open_downgrade(Compound& c, const nfs4::OpenDowngradeArgs& args);
Status op_close(Compound& c, const nfs4::CloseArgs& args);

// ops_lock.cpp
Status op_lock(Compound& c, const nfs4::LockArgs& args);
Status op_lockt(Compound& c, const nfs4::LocktArgs& args);
Status op_locku(Compound& c, const nfs4::LockuArgs& args);
Status op_delegreturn(Compound& c, const nfs4::DelegreturnArgs& args);
Status op_test_stateid(Compound& c, const nfs4::TestStateidArgs& args);
Status op_free_stateid(Compound& c, const nfs4::FreeStateidArgs& args);

}  // namespace nfsrdma::server
