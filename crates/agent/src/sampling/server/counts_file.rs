//! The file in which a server counts what it receives.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use net::folder::Folder;
use readings::{Arrivals, Received};

/// The longest file that is read: the counts of 1024 threads.
const BYTES_MAX: usize = 1024 * BLOCK_BYTES;
/// The counts of one thread.
const BLOCK_BYTES: usize = Received::CELLS * size_of::<u64>();

/// The longest file of arrivals that is read: those of 256 threads.
const ARRIVALS_BYTES_MAX: usize = 256 * ARRIVALS_BLOCK_BYTES;
const ARRIVALS_BLOCK_BYTES: usize = Arrivals::CELLS * size_of::<u64>();

/// Held open while the server is watched. A server that is started again goes on counting in it.
pub(crate) struct CountsFile {
    counts: File,
    /// When requests came.
    arrivals: Option<File>,
}

impl CountsFile {
    /// Opens a file directly in a server's folder, the name of which the server may have given to
    /// anything; `None` for all but a regular file.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let folder = Folder::open(path.parent()?).ok()?;
        let open = |path: &Path| {
            let file = folder.open_file(Path::new(path.file_name()?)).ok()?;
            file.metadata().ok()?.is_file().then_some(file)
        };
        Some(Self {
            counts: open(path)?,
            arrivals: open(&Arrivals::file_beside(path)),
        })
    }

    /// When requests came between two times by CLOCK_MONOTONIC; `None` where the server does not tell, or
    /// for a longer time than it tells.
    pub(crate) fn arrivals(&self, from_ns: i64, to_ns: i64) -> Option<Arrivals> {
        let file = self.arrivals.as_ref()?;
        let cells = cells(file, ARRIVALS_BLOCK_BYTES, ARRIVALS_BYTES_MAX)?;
        let (from_ns, to_ns) = (u64::try_from(from_ns).ok()?, u64::try_from(to_ns).ok()?);
        Arrivals::of_cells(&cells, from_ns, to_ns)
    }

    /// The sum over all threads; `None` where the file has no such counts.
    pub(crate) fn read(&self) -> Option<Received> {
        let cells = cells(&self.counts, BLOCK_BYTES, BYTES_MAX)?;
        Some(Received::of_cells(&cells))
    }
}

/// The numbers in a file of whole blocks; `None` for another length.
fn cells(file: &File, block: usize, most: usize) -> Option<Vec<u64>> {
    let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
    if !(block..=most).contains(&length) || length % block != 0 {
        return None;
    }
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let (cells, _) = bytes.as_chunks::<{ size_of::<u64>() }>();
    Some(cells.iter().copied().map(u64::from_ne_bytes).collect())
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
        assert_eq!(file.arrivals(0, 1_000_000_000), None, "it does not tell");
        let beside = Arrivals::file_beside(&path);
        let page = net::os::SharedCounts::open(Some(&beside), Arrivals::CELLS).unwrap();
        page.all()[7].store(Arrivals::counted(0, 7), Ordering::Relaxed);
        let file = CountsFile::open(&path).unwrap();
        let found = file.arrivals(60_000_000, 90_000_000).unwrap();
        assert_eq!(found.counts, [0, 1, 0]);
        let link = place.0.join("link");
        symlink(&path, &link).unwrap();
        assert!(CountsFile::open(&link).is_none());
        assert!(CountsFile::open(&place.0).is_none());
        std::fs::write(place.0.join("odd"), [0; 65]).unwrap();
        let odd = CountsFile::open(&place.0.join("odd")).unwrap();
        assert_eq!(odd.read(), None);
    }
}
