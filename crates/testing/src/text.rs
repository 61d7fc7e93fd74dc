//! What a text has, asserted so that a failure shows the text.

pub trait Text: AsRef<str> {
    #[track_caller]
    fn has(&self, part: &str) {
        let text = self.as_ref();
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }

    #[track_caller]
    fn has_all<const N: usize>(&self, parts: [&str; N]) {
        for part in parts {
            self.has(part);
        }
    }

    #[track_caller]
    fn lacks(&self, part: &str) {
        let text = self.as_ref();
        assert!(!text.contains(part), "{part:?} in\n{text}");
    }

    #[track_caller]
    fn begins(&self, start: &str) {
        let text = self.as_ref();
        assert!(text.starts_with(start), "not first: {start:?} in\n{text}");
    }

    #[track_caller]
    fn ends(&self, end: &str) {
        let text = self.as_ref();
        assert!(text.ends_with(end), "not last: {end:?} in\n{text}");
    }
}

impl<T: AsRef<str> + ?Sized> Text for T {}
