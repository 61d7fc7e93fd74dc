//! The terminal: taken for a while, and given back whatever happens.

use std::io::{self, BufWriter, IsTerminal, Stderr, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};

use super::draw::{self, COLUMNS_MIN, LINES_MIN};
use super::state::State;

/// Whether the terminal is ours at present.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal behind standard error, on its other screen and without line editing.
pub(super) struct Screen(Terminal<CrosstermBackend<BufWriter<Stderr>>>);

impl Screen {
    /// Takes the terminal; `None` where standard error is none, it is too small or too simple, or
    /// this is a background job, which must not touch it.
    pub(super) fn take() -> Option<Self> {
        let fit = size().is_ok_and(|(columns, lines)| columns >= COLUMNS_MIN && lines >= LINES_MIN);
        let simple = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        if !io::stderr().is_terminal() || !fit || simple || !in_foreground() {
            return None;
        }
        give_back_when_panicking();
        enable_raw_mode().ok()?;
        TAKEN.store(true, Ordering::SeqCst);
        let terminal = execute!(io::stderr(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(BufWriter::new(io::stderr()))));
        match terminal {
            Ok(terminal) => Some(Self(terminal)),
            Err(_) => {
                give_back();
                None
            }
        }
    }

    /// Whether it is still ours: a panic gives it back at once, to be read.
    pub(super) fn is_taken(&self) -> bool {
        TAKEN.load(Ordering::SeqCst)
    }

    /// Draws the state, at the size that the terminal has now.
    pub(super) fn draw(&mut self, state: &State) -> io::Result<()> {
        self.0.draw(|frame| draw::draw(frame, state)).map(drop)
    }

    /// Whether a key that ends the load was pressed since the last call.
    pub(super) fn asked_to_stop(&mut self) -> bool {
        // Without a way to read keys there are signals still.
        while event::poll(Duration::ZERO).unwrap_or(false) {
            let Ok(Event::Key(key)) = event::read() else {
                continue;
            };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            let control = key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                KeyCode::Char('q' | 'Q') => return true,
                KeyCode::Char('c') if control => return true,
                KeyCode::Char('l') if control => {
                    let _ = self.0.clear();
                }
                _ => {}
            }
        }
        false
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // What is buffered belongs on the other screen.
        let _ = self.0.show_cursor();
        let _ = self.0.backend_mut().flush();
        give_back();
    }
}

/// Gives the terminal back if it is ours.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(io::stderr(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// A panic's message must be read, and the stack may not be unwound to the end.
fn give_back_when_panicking() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            before(info);
        }));
    });
}

/// Whether this process belongs to the terminal's foreground job. The kernel stops one that does
/// not when it changes the terminal.
fn in_foreground() -> bool {
    std::fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|stat| foreground(&stat))
        .unwrap_or(false)
}

/// From proc_pid_stat(5): the process group, field 5, is the terminal's foreground one, field 8.
fn foreground(stat: &str) -> Option<bool> {
    // The name, in parentheses, may hold anything.
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
    Some(fields.get(2)? == fields.get(5)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_background_job_leaves_the_terminal_alone() {
        assert_eq!(foreground("7 (a) b) R 1 7 7 34816 7 4194304"), Some(true));
        assert_eq!(foreground("7 (weigh) R 1 7 5 34816 5 0"), Some(false));
        assert_eq!(foreground("7 (weigh) R 1 7 7 0 -1 0"), Some(false));
        assert_eq!(foreground("7 (weigh) R 1"), None);
    }
}
