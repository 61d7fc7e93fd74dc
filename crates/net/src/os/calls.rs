//! Results of system calls, and memory from the kernel.

use std::io;

pub(crate) fn check(result: i32) -> io::Result<i32> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Repeats a system call while signals interrupt it; its result, or the `errno`.
pub(crate) fn again(mut call: impl FnMut() -> isize) -> Result<usize, i32> {
    loop {
        let n = call();
        if n >= 0 {
            return Ok(n as usize);
        }
        match io::Error::last_os_error().raw_os_error().unwrap_or(0) {
            libc::EINTR => {}
            errno => return Err(errno),
        }
    }
}

/// Maps zeroed memory that is allocated when it is touched; [`unmap_memory`] frees it.
pub(crate) fn map_memory(bytes: usize) -> io::Result<*mut u8> {
    // SAFETY: a new mapping, of no file, wherever there is room.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(memory.cast())
}

/// Frees whole pages of memory of [`map_memory`] that holds nothing; they are zeroed when they are
/// touched again.
pub(crate) fn free_pages(start: *mut u8, bytes: usize) {
    let page = super::page_bytes() as usize;
    let before = start.align_offset(page);
    let whole = bytes.saturating_sub(before) / page * page;
    if whole > 0 {
        // SAFETY: the range lies in a private mapping that the caller owns, and nobody needs what it
        // holds.
        unsafe { libc::madvise(start.add(before).cast(), whole, libc::MADV_DONTNEED) };
    }
}

/// Gives memory that was freed back to the system. Other threads wait for it if they allocate
/// meanwhile: some milliseconds with a large heap. Allocators other than glibc's do it by themselves.
pub fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes a number, and touches only what is free.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Unmaps memory of [`map_memory`], which must not be used any more.
pub(crate) fn unmap_memory(memory: *mut u8, bytes: usize) {
    // SAFETY: the caller owns this mapping and has no reference into it.
    unsafe { libc::munmap(memory.cast(), bytes) };
}
