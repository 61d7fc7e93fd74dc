//! The content of DATA frames, which is passed on as it arrives.

use super::{Event, FrameReader, H2Error, Head, Next, PADDING_TOO_LONG, flag};

impl FrameReader {
    pub(super) fn begin_padded<F>(
        &mut self,
        head: Head,
        padding: u8,
        each: &mut F,
    ) -> Result<(), H2Error>
    where
        F: FnMut(Event<'_>) -> Result<(), H2Error>,
    {
        let padding = u32::from(padding);
        if padding >= head.length {
            return Err(PADDING_TOO_LONG);
        }
        self.begin_content(&head, padding, padding + 1, each)
    }

    /// Begins the content of a DATA frame. `flow` counts against windows beside it.
    #[inline]
    pub(super) fn begin_content<F>(
        &mut self,
        head: &Head,
        padding: u32,
        flow: u32,
        each: &mut F,
    ) -> Result<(), H2Error>
    where
        F: FnMut(Event<'_>) -> Result<(), H2Error>,
    {
        let end_stream = head.has(flag::END_STREAM);
        let stream = head.stream;
        if head.length > flow {
            self.next = Next::Content {
                stream,
                left: head.length - flow,
                padding,
                flow,
                end_stream,
            };
            return Ok(());
        }
        if !end_stream {
            self.count_overhead();
        }
        self.skip(padding);
        each(Event::Data {
            stream,
            bytes: &[],
            flow,
            end_stream,
        })
    }

    #[inline]
    pub(super) fn take_content<'i, F>(
        &mut self,
        input: &'i [u8],
        each: &mut F,
    ) -> Result<&'i [u8], H2Error>
    where
        F: FnMut(Event<'_>) -> Result<(), H2Error>,
    {
        let Next::Content {
            stream,
            left,
            padding,
            flow,
            end_stream,
        } = self.next
        else {
            return Ok(input);
        };
        let (bytes, rest) = input.split_at(input.len().min(left as usize));
        let taken = bytes.len() as u32;
        if taken == left {
            self.skip(padding);
        } else {
            self.next = Next::Content {
                stream,
                left: left - taken,
                padding,
                flow: 0,
                end_stream,
            };
        }
        each(Event::Data {
            stream,
            bytes,
            flow: flow + taken,
            end_stream: end_stream && taken == left,
        })?;
        Ok(rest)
    }
}
