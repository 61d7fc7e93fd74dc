//! Messages with their prefixes.

/// Bytes before each message: the compressed flag, and the length as four bytes, big-endian.
pub const PREFIX_BYTES: usize = 5;

/// The longest message that a load reads: far above the 4 MiB that most clients accept.
pub const MESSAGE_BYTES_MAX: u32 = 64 << 20;

/// Why bytes are no messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrpcError {
    #[error("a message with the compressed flag {0}, which is neither 0 nor 1")]
    Flag(u8),
    #[error("a compressed message, although no compression was agreed on")]
    Compressed,
    #[error("a message of {length} bytes; at most {most} are read")]
    TooLong {
        /// As its prefix says.
        length: u32,
        /// What the reader accepts.
        most: u32,
    },
    #[error("the end of the stream {missing} bytes before that of a message or its prefix")]
    Cut {
        /// Bytes that are missing.
        missing: u32,
    },
}

/// A part of a stream of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// The prefix of a message that has this length.
    Start(u32),
    /// A piece of the message; never empty.
    Content(&'a [u8]),
    /// The message is complete.
    End,
}

/// The prefix of a message of this length that is not compressed.
#[inline]
pub fn prefix(length: u32) -> [u8; PREFIX_BYTES] {
    let [a, b, c, d] = length.to_be_bytes();
    [0, a, b, c, d]
}

/// Reads a stream of messages, in any pieces. It keeps no content.
#[derive(Clone, Debug)]
pub struct MessageReader {
    prefix: [u8; PREFIX_BYTES],
    /// Bytes of the prefix that are there.
    prefix_bytes: u8,
    /// Bytes of the message that are still to come, once its prefix is there.
    left: u32,
    most: u32,
}

impl MessageReader {
    /// A reader of messages of at most `most` bytes.
    pub const fn new(most: u32) -> Self {
        Self {
            prefix: [0; PREFIX_BYTES],
            prefix_bytes: 0,
            left: 0,
            most,
        }
    }

    /// Begins anew.
    #[inline]
    pub fn reset(&mut self) {
        (self.prefix_bytes, self.left) = (0, 0);
    }

    /// Takes bytes of the stream, and hands out its parts in order.
    ///
    /// # Errors
    /// When they are no messages, or too long a one. The reader is of no use after that.
    #[inline]
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(Part<'_>),
    ) -> Result<(), GrpcError> {
        while !bytes.is_empty() {
            let have = usize::from(self.prefix_bytes);
            if have < PREFIX_BYTES {
                let taken = bytes.len().min(PREFIX_BYTES - have);
                self.prefix[have..have + taken].copy_from_slice(&bytes[..taken]);
                self.prefix_bytes += taken as u8;
                bytes = &bytes[taken..];
                if usize::from(self.prefix_bytes) < PREFIX_BYTES {
                    return Ok(());
                }
                self.left = self.length()?;
                each(Part::Start(self.left));
            } else {
                let taken = bytes.len().min(self.left as usize);
                let (content, rest) = bytes.split_at(taken);
                self.left -= taken as u32;
                each(Part::Content(content));
                bytes = rest;
            }
            if self.left == 0 {
                self.prefix_bytes = 0;
                each(Part::End);
            }
        }
        Ok(())
    }

    /// The length in a complete prefix.
    fn length(&self) -> Result<u32, GrpcError> {
        let [flag, a, b, c, d] = self.prefix;
        match flag {
            0 => {}
            1 => return Err(GrpcError::Compressed),
            _ => return Err(GrpcError::Flag(flag)),
        }
        let length = u32::from_be_bytes([a, b, c, d]);
        match length > self.most {
            true => Err(GrpcError::TooLong {
                length,
                most: self.most,
            }),
            false => Ok(length),
        }
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// When a message or its prefix is not complete.
    #[inline]
    pub fn end(&self) -> Result<(), GrpcError> {
        match (self.prefix_bytes, self.left) {
            (0, _) => Ok(()),
            (prefix, left) => Err(GrpcError::Cut {
                missing: (PREFIX_BYTES as u32 - u32::from(prefix)) + left,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The messages in the pieces of a stream, and what is wrong with it.
    fn read(pieces: &[&[u8]], most: u32) -> (Vec<Vec<u8>>, Result<(), GrpcError>) {
        let mut reader = MessageReader::new(most);
        let (mut messages, mut current) = (Vec::new(), Vec::new());
        let mut announced = 0;
        for piece in pieces {
            let fed = reader.feed(piece, |part| match part {
                Part::Start(length) => announced = length as usize,
                Part::Content(bytes) => current.extend_from_slice(bytes),
                Part::End => {
                    assert_eq!(announced, current.len());
                    messages.push(std::mem::take(&mut current));
                }
            });
            if fed.is_err() {
                return (messages, fed);
            }
        }
        (messages, reader.end())
    }

    #[test]
    fn a_length_of_four_gigabytes_is_refused_with_the_prefix() {
        let (messages, result) = read(&[&[0, 255, 255, 255, 255]], MESSAGE_BYTES_MAX);
        assert!(messages.is_empty());
        let error = result.unwrap_err();
        assert_eq!(
            error.to_string(),
            "a message of 4294967295 bytes; at most 67108864 are read"
        );
        let (_, longest) = read(&[&prefix(MESSAGE_BYTES_MAX)], MESSAGE_BYTES_MAX);
        let missing = MESSAGE_BYTES_MAX;
        assert_eq!(longest, Err(GrpcError::Cut { missing }));
    }

    #[test]
    fn compression_was_not_agreed_on() {
        assert_eq!(read(&[&[1, 0, 0, 0, 1]], 9).1, Err(GrpcError::Compressed));
        assert_eq!(read(&[&[2, 0, 0, 0, 1]], 9).1, Err(GrpcError::Flag(2)));
    }

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..6),
            size in 1usize..9,
            cut in 0usize..9,
        ) {
            let mut stream = Vec::new();
            for message in &messages {
                stream.extend(prefix(message.len() as u32));
                stream.extend(message);
            }
            let pieces: Vec<&[u8]> = stream.chunks(size).collect();
            prop_assert_eq!(read(&pieces, 20), (messages.clone(), Ok(())));

            let kept = stream.len().saturating_sub(cut);
            let (found, result) = read(&[&stream[..kept]], 20);
            prop_assert!(messages.starts_with(&found));
            let complete: usize = found.iter().map(|one| PREFIX_BYTES + one.len()).sum();
            prop_assert_eq!(result.is_ok(), complete == kept);
        }
    }
}
