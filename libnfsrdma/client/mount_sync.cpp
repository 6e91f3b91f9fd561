// SPDX-License-Identifier: Apache-2.0
// The blocking forms of class Mount.
#include "client/mount_impl.hpp"

namespace nfsrdma {

Result<Entry> Mount::resolve(std::string_view path, bool follow, const Credentials& who) {
  return impl_->wait<Entry>(
      [i = impl_.get(), path = std::string(path), follow, who] { return i->resolve(path, follow, who); });
}

Result<Entry> Mount::lookup(const Node& directory, std::string_view name, const Credentials& who) {
  return impl_->wait<Entry>([i = impl_.get(), directory, name = std::string(name), who] {
    return i->lookup(directory, name, who);
  });
}

Result<Entry> Mount::lookup_parent(const Node& directory, const Credentials& who) {
  return impl_->wait<Entry>([i = impl_.get(), directory, who] { return i->lookup_parent(directory, who); });
}

Result<std::string> Mount::read_link(const Node& link, const Credentials& who) {
  return impl_->wait<std::string>([i = impl_.get(), link, who] { return i->read_link(link, who); });
}

Result<DirectoryPage> Mount::read_directory(const Node& directory, uint64_t cookie, uint64_t verifier,
                                            uint32_t bytes_max, bool with_attributes,
                                            const Credentials& who) {
  return impl_->wait<DirectoryPage>(
      [i = impl_.get(), directory, cookie, verifier, bytes_max, with_attributes, who] {
        return i->read_directory(directory, cookie, verifier, bytes_max, with_attributes, who);
      });
}

Result<Entry> Mount::make_directory(const Node& directory, std::string_view name, uint32_t mode,
                                    const Credentials& who) {
  return impl_->wait<Entry>([i = impl_.get(), directory, name = std::string(name), mode, who] {
    return i->make(directory, name, nfs4::FileType::directory, mode, {}, {}, who);
  });
}

Result<Entry> Mount::make_node(const Node& directory, std::string_view name, NodeType type, uint32_t mode,
                               uint32_t rdev_major, uint32_t rdev_minor, const Credentials& who) {
  return impl_->wait<Entry>(
      [i = impl_.get(), directory, name = std::string(name), type, mode, rdev_major, rdev_minor, who] {
        return i->make(directory, name, static_cast<nfs4::FileType>(type), mode, {rdev_major, rdev_minor}, {},
                       who);
      });
}

Result<Entry> Mount::make_symlink(const Node& directory, std::string_view name, std::string_view target,
                                  const Credentials& who) {
  return impl_->wait<Entry>(
      [i = impl_.get(), directory, name = std::string(name), target = std::string(target), who] {
        return i->make(directory, name, nfs4::FileType::symlink, 0777, {}, target, who);
      });
}

Result<Entry> Mount::make_link(const Node& file, const Node& directory, std::string_view name,
                               const Credentials& who) {
  return impl_->wait<Entry>([i = impl_.get(), file, directory, name = std::string(name), who] {
    return i->make_link(file, directory, name, who);
  });
}

Result<void> Mount::remove(const Node& directory, std::string_view name, const Credentials& who) {
  return impl_->wait<void>([i = impl_.get(), directory, name = std::string(name), who] {
    return i->remove(directory, name, who);
  });
}

Result<void> Mount::rename(const Node& from_directory, std::string_view from_name, const Node& to_directory,
                           std::string_view to_name, const Credentials& who) {
  return impl_->wait<void>([i = impl_.get(), from_directory, from_name = std::string(from_name), to_directory,
                            to_name = std::string(to_name), who] {
    return i->rename(from_directory, from_name, to_directory, to_name, who);
  });
}

Result<Attributes> Mount::get_attributes(const Node& node, const Credentials& who) {
  return impl_->wait<Attributes>([i = impl_.get(), node, who] { return i->get_attributes(node, who); });
}

Result<Attributes> Mount::set_attributes(const Node& node, const AttributeChange& change,
                                         const Credentials& who) {
  return impl_->wait<Attributes>([i = impl_.get(), node, change, who] {
    return i->set_attributes(node, nfs4::anonymous_stateid, change, who);
  });
}

Result<Attributes> Mount::set_attributes(const File& file, const AttributeChange& change,
                                         const Credentials& who) {
  return impl_->wait<Attributes>(
      [i = impl_.get(), file, change, who] { return i->set_attributes_open(file, change, who); });
}

Result<uint32_t> Mount::access(const Node& node, uint32_t wanted, const Credentials& who) {
  return impl_->wait<uint32_t>([i = impl_.get(), node, wanted, who] { return i->access(node, wanted, who); });
}

Result<FileSystemStats> Mount::file_system_stats(const Node& node, const Credentials& who) {
  return impl_->wait<FileSystemStats>(
      [i = impl_.get(), node, who] { return i->file_system_stats(node, who); });
}

Result<Opened> Mount::open(const Node& file, uint32_t open_flags, const Credentials& who) {
  return impl_->wait<Opened>(
      [i = impl_.get(), file, open_flags, who] { return i->open(file, open_flags, who); });
}

Result<Opened> Mount::create(const Node& directory, std::string_view name, uint32_t open_flags, uint32_t mode,
                             const Credentials& who) {
  return impl_->wait<Opened>([i = impl_.get(), directory, name = std::string(name), open_flags, mode, who] {
    return i->create(directory, name, open_flags, mode, who);
  });
}

Result<ReadResult> Mount::read(const File& file, uint64_t offset, Slice into) {
  return impl_->wait<ReadResult>(
      [i = impl_.get(), file, offset, into] { return i->read(file, offset, into); });
}

Result<ReadResult> Mount::read(const File& file, uint64_t offset, std::span<std::byte> into) {
  return impl_->wait<ReadResult>(
      [i = impl_.get(), file, offset, into] { return i->read_copied(file, offset, into); });
}

Result<size_t> Mount::write(const File& file, uint64_t offset, Slice from, Stability stability) {
  return impl_->wait<size_t>([i = impl_.get(), file, offset, from, stability] {
    return i->write(file, offset, from, mem::Buffer{}, stability);
  });
}

Result<size_t> Mount::write(const File& file, uint64_t offset, std::span<const std::byte> from,
                            Stability stability) {
  return impl_->wait<size_t>([i = impl_.get(), file, offset, from, stability] {
    return i->write_copied(file, offset, from, stability);
  });
}

Result<void> Mount::sync(const File& file) {
  return impl_->wait<void>([i = impl_.get(), file] { return i->sync(file); });
}

Result<void> Mount::close(const File& file) {
  return impl_->wait<void>([i = impl_.get(), file] { return i->close(file); });
}

Result<size_t> Mount::write(const File& file, uint64_t offset, Buffer buffer, size_t at, size_t length,
                            Stability stability) {
  Slice from = buffer.slice(at, length);
  return impl_->wait<size_t>(
      [i = impl_.get(), file, offset, from, owned = std::move(client::BufferState::of(buffer).buffer),
       stability]() mutable { return i->write(file, offset, from, std::move(owned), stability); });
}

}  // namespace nfsrdma
