//! The dynamic table, RFC 7541 sections 2.3.2 and 4.

use std::collections::VecDeque;

/// What an entry of the dynamic table and a field of a list count beside their bytes.
pub(super) const ENTRY_OVERHEAD: usize = 32;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where its name begins in `DynamicTable::bytes`; the value follows.
    at: usize,
    name_len: usize,
    value_len: usize,
}

impl Entry {
    fn len(&self) -> usize {
        self.name_len + self.value_len
    }

    fn size(&self) -> usize {
        self.len() + ENTRY_OVERHEAD
    }
}

/// Entries of at most `size_max`. Their bytes are appended to one buffer, whose front is dropped
/// when it is longer than the largest table.
#[derive(Debug)]
pub(super) struct DynamicTable {
    /// The newest in front.
    entries: VecDeque<Entry>,
    bytes: Vec<u8>,
    size: usize,
    size_max: usize,
}

impl DynamicTable {
    pub(super) fn new(size_max: usize) -> Self {
        DynamicTable {
            entries: VecDeque::new(),
            bytes: Vec::new(),
            size: 0,
            size_max,
        }
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.size
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[cfg(test)]
    pub(super) fn bytes_held(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    pub(super) fn resize(&mut self, size_max: usize) {
        self.size_max = size_max;
        self.evict(0);
        self.drop_front();
    }

    /// Name and value of the entry `nth`; the newest is 0.
    pub(super) fn get(&self, nth: usize) -> Option<(&[u8], &[u8])> {
        let entry = self.entries.get(nth)?;
        Some(self.bytes[entry.at..entry.at + entry.len()].split_at(entry.name_len))
    }

    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        if !self.make_room(name.len() + value.len()) {
            return;
        }
        let at = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.push(at, name.len(), value);
    }

    /// Inserts an entry with the name of the entry `nth`, which may be evicted for it.
    pub(super) fn insert_named_by(&mut self, nth: usize, value: &[u8]) {
        let Some(&named) = self.entries.get(nth) else {
            return;
        };
        if !self.make_room(named.name_len + value.len()) {
            return;
        }
        // The bytes of evicted entries are still in place.
        let at = self.bytes.len();
        let name = named.at..named.at + named.name_len;
        self.bytes.extend_from_within(name);
        self.push(at, named.name_len, value);
    }

    /// Evicts entries until one with so many bytes fits. One that never fits empties the table.
    fn make_room(&mut self, len: usize) -> bool {
        let size = len + ENTRY_OVERHEAD;
        self.evict(size);
        size <= self.size_max
    }

    /// Evicts the oldest entries until the table has room for `more`, or is empty.
    fn evict(&mut self, more: usize) {
        while self.size + more > self.size_max
            && let Some(entry) = self.entries.pop_back()
        {
            self.size -= entry.size();
        }
    }

    fn push(&mut self, at: usize, name_len: usize, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        let entry = Entry {
            at,
            name_len,
            value_len: value.len(),
        };
        self.size += entry.size();
        self.entries.push_front(entry);
        self.drop_front();
    }

    /// Drops the bytes of evicted entries once they are as many as the table may hold, so that
    /// each byte is moved at most once on average.
    fn drop_front(&mut self) {
        let dead = self
            .entries
            .back()
            .map_or(self.bytes.len(), |oldest| oldest.at);
        if dead > self.size_max {
            self.bytes.drain(..dead);
            for entry in &mut self.entries {
                entry.at -= dead;
            }
        }
    }
}
