//! The file in which a server counts what it receives.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use net::folder::Folder;
use readings::Received;

/// The longest file that is read: the counts of 1024 threads.
const BYTES_MAX: usize = 1024 * BLOCK_BYTES;
/// The counts of one thread.
const BLOCK_BYTES: usize = Received::CELLS * size_of::<u64>();

/// Held open while the server is watched. A server that is started again goes on counting in it.
pub(crate) struct CountsFile(File);

impl CountsFile {
    /// Opens a file directly in a server's folder, the name of which the server may have given to
    /// anything; `None` for all but a regular file.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let folder = Folder::open(path.parent()?).ok()?;
        let file = folder.open_file(Path::new(path.file_name()?)).ok()?;
        file.metadata().ok()?.is_file().then_some(Self(file))
    }

    /// The sum over all threads; `None` where the file has no such counts.
    pub(crate) fn read(&self) -> Option<Received> {
        let length = usize::try_from(self.0.metadata().ok()?.len()).ok()?;
        if !(BLOCK_BYTES..=BYTES_MAX).contains(&length) || length % BLOCK_BYTES != 0 {
            return None;
        }
        let mut bytes = vec![0; length];
        self.0.read_exact_at(&mut bytes, 0).ok()?;
        let (cells, _) = bytes.as_chunks::<{ size_of::<u64>() }>();
        let cells: Vec<u64> = cells.iter().copied().map(u64::from_ne_bytes).collect();
        Some(Received::of_cells(&cells))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fixtures::TemporaryFolder;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::Ordering;

    #[test]
    fn counts_are_read_from_a_regular_file_of_whole_blocks_only() {
        let place = TemporaryFolder::new();
        let path = place.0.join("counts");
        assert!(CountsFile::open(&path).is_none());
        let page = net::os::SharedCounts::open(Some(&path), 2 * Received::CELLS).unwrap();
        let file = CountsFile::open(&path).unwrap();
        for (cell, value) in [(0, 3), (Received::CELLS, 4), (Received::CELLS + 1, 5)] {
            page.all()[cell].store(value, Ordering::Relaxed);
        }
        let seen = file.read().unwrap();
        assert_eq!((seen.requests, seen.body_bytes), (7, 5));
        let link = place.0.join("link");
        symlink(&path, &link).unwrap();
        assert!(CountsFile::open(&link).is_none());
        assert!(CountsFile::open(&place.0).is_none());
        std::fs::write(place.0.join("odd"), [0; 65]).unwrap();
        let odd = CountsFile::open(&place.0.join("odd")).unwrap();
        assert_eq!(odd.read(), None);
    }
}
