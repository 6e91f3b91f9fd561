// SPDX-License-Identifier: Apache-2.0
// The asynchronous forms of class Mount: each starts its coroutine on a loop.
#include "client/mount_impl.hpp"

namespace nfsrdma {

void Mount::resolve(std::string_view path, bool follow, const Credentials& who, Done<Entry> done) {
  impl_->start<Entry>(
      [i = impl_.get(), path = std::string(path), follow, who] { return i->resolve(path, follow, who); },
      std::move(done));
}

void Mount::lookup(const Node& directory, std::string_view name, const Credentials& who, Done<Entry> done) {
  impl_->start<Entry>(
      [i = impl_.get(), directory, name = std::string(name), who] { return i->lookup(directory, name, who); },
      std::move(done));
}

void Mount::lookup_parent(const Node& directory, const Credentials& who, Done<Entry> done) {
  impl_->start<Entry>([i = impl_.get(), directory, who] { return i->lookup_parent(directory, who); },
                      std::move(done));
}

void Mount::read_link(const Node& link, const Credentials& who, Done<std::string> done) {
  impl_->start<std::string>([i = impl_.get(), link, who] { return i->read_link(link, who); },
                            std::move(done));
}

void Mount::read_directory(const Node& directory, uint64_t cookie, uint64_t verifier, uint32_t bytes_max,
                           bool with_attributes, const Credentials& who, Done<DirectoryPage> done) {
  impl_->start<DirectoryPage>(
      [i = impl_.get(), directory, cookie, verifier, bytes_max, with_attributes, who] {
        return i->read_directory(directory, cookie, verifier, bytes_max, with_attributes, who);
      },
      std::move(done));
}

void Mount::make_directory(const Node& directory, std::string_view name, uint32_t mode,
                           const Credentials& who, Done<Entry> done) {
  impl_->start<Entry>(
      [i = impl_.get(), directory, name = std::string(name), mode, who] {
        return i->make(directory, name, nfs4::FileType::directory, mode, {}, {}, who);
      },
      std::move(done));
}

void Mount::make_node(const Node& directory, std::string_view name, NodeType type, uint32_t mode,
                      uint32_t rdev_major, uint32_t rdev_minor, const Credentials& who, Done<Entry> done) {
  impl_->start<Entry>(
      [i = impl_.get(), directory, name = std::string(name), type, mode, rdev_major, rdev_minor, who] {
        return i->make(directory, name, static_cast<nfs4::FileType>(type), mode, {rdev_major, rdev_minor}, {},
                       who);
      },
      std::move(done));
}

void Mount::make_symlink(const Node& directory, std::string_view name, std::string_view target,
                         const Credentials& who, Done<Entry> done) {
  impl_->start<Entry>(
      [i = impl_.get(), directory, name = std::string(name), target = std::string(target), who] {
        return i->make(directory, name, nfs4::FileType::symlink, 0777, {}, target, who);
      },
      std::move(done));
}

void Mount::make_link(const Node& file, const Node& directory, std::string_view name, const Credentials& who,
                      Done<Entry> done) {
  impl_->start<Entry>([i = impl_.get(), file, directory, name = std::string(name),
                       who] { return i->make_link(file, directory, name, who); },
                      std::move(done));
}

void Mount::remove(const Node& directory, std::string_view name, const Credentials& who, Done<void> done) {
  impl_->start<void>(
      [i = impl_.get(), directory, name = std::string(name), who] { return i->remove(directory, name, who); },
      std::move(done));
}

void Mount::rename(const Node& from_directory, std::string_view from_name, const Node& to_directory,
                   std::string_view to_name, const Credentials& who, Done<void> done) {
  impl_->start<void>([i = impl_.get(), from_directory, from_name = std::string(from_name), to_directory,
                      to_name = std::string(to_name),
                      who] { return i->rename(from_directory, from_name, to_directory, to_name, who); },
                     std::move(done));
}

void Mount::get_attributes(const Node& node, const Credentials& who, Done<Attributes> done) {
  impl_->start<Attributes>([i = impl_.get(), node, who] { return i->get_attributes(node, who); },
                           std::move(done));
}

void Mount::set_attributes(const Node& node, const AttributeChange& change, const Credentials& who,
                           Done<Attributes> done) {
  impl_->start<Attributes>([i = impl_.get(), node, change,
                            who] { return i->set_attributes(node, nfs4::anonymous_stateid, change, who); },
                           std::move(done));
}

void Mount::set_attributes(const File& file, const AttributeChange& change, const Credentials& who,
                           Done<Attributes> done) {
  impl_->start<Attributes>(
      [i = impl_.get(), file, change, who] { return i->set_attributes_open(file, change, who); },
      std::move(done));
}

void Mount::access(const Node& node, uint32_t wanted, const Credentials& who, Done<uint32_t> done) {
  impl_->start<uint32_t>([i = impl_.get(), node, wanted, who] { return i->access(node, wanted, who); },
                         std::move(done));
}

void Mount::file_system_stats(const Node& node, const Credentials& who, Done<FileSystemStats> done) {
  impl_->start<FileSystemStats>([i = impl_.get(), node, who] { return i->file_system_stats(node, who); },
                                std::move(done));
}

void Mount::open(const Node& file, uint32_t open_flags, const Credentials& who, Done<Opened> done) {
  impl_->start<Opened>([i = impl_.get(), file, open_flags, who] { return i->open(file, open_flags, who); },
                       std::move(done));
}

void Mount::create(const Node& directory, std::string_view name, uint32_t open_flags, uint32_t mode,
                   const Credentials& who, Done<Opened> done) {
  impl_->start<Opened>([i = impl_.get(), directory, name = std::string(name), open_flags, mode,
                        who] { return i->create(directory, name, open_flags, mode, who); },
                       std::move(done));
}

void Mount::read(const File& file, uint64_t offset, Slice into, Done<ReadResult> done) {
  impl_->start<ReadResult>([i = impl_.get(), file, offset, into] { return i->read(file, offset, into); },
                           std::move(done));
}

void Mount::read(const File& file, uint64_t offset, std::span<std::byte> into, Done<ReadResult> done) {
  impl_->start<ReadResult>(
      [i = impl_.get(), file, offset, into] { return i->read_copied(file, offset, into); }, std::move(done));
}

void Mount::write(const File& file, uint64_t offset, Slice from, Stability stability, Done<size_t> done) {
  impl_->start<size_t>([i = impl_.get(), file, offset, from,
                        stability] { return i->write(file, offset, from, mem::Buffer{}, stability); },
                       std::move(done));
}

void Mount::write(const File& file, uint64_t offset, std::span<const std::byte> from, Stability stability,
                  Done<size_t> done) {
  impl_->start<size_t>([i = impl_.get(), file, offset, from,
                        stability] { return i->write_copied(file, offset, from, stability); },
                       std::move(done));
}

void Mount::sync(const File& file, Done<void> done) {
  impl_->start<void>([i = impl_.get(), file] { return i->sync(file); }, std::move(done));
}

void Mount::close(const File& file, Done<void> done) {
  impl_->start<void>([i = impl_.get(), file] { return i->close(file); }, std::move(done));
}

void Mount::write(const File& file, uint64_t offset, Buffer buffer, size_t at, size_t length,
                  Stability stability, Done<size_t> done) {
  Slice from = buffer.slice(at, length);
  impl_->start<size_t>(
      [i = impl_.get(), file, offset, from, owned = std::move(client::BufferState::of(buffer).buffer),
       stability]() mutable { return i->write(file, offset, from, std::move(owned), stability); },
      std::move(done));
}

}  // namespace nfsrdma
