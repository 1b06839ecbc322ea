//! Size of text, split by the kinds that estimates distinguish.

use serde::Serialize;

/// Size of a block, split by the kinds that estimates distinguish.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Size {
    /// Bytes of text and thinking.
    pub text_bytes: usize,
    /// Bytes of text in tool results.
    pub result_bytes: usize,
    /// Bytes of tool input, as JSON.
    pub call_bytes: usize,
    /// Number of tool calls.
    pub calls: usize,
    /// Number of pictures and documents.
    pub media: usize,
}

impl Size {
    pub(crate) fn text(bytes: usize) -> Self {
        Self { text_bytes: bytes, ..Self::default() }
    }

    pub(crate) fn call(bytes: usize) -> Self {
        Self { call_bytes: bytes, calls: 1, ..Self::default() }
    }

    pub(crate) fn media() -> Self {
        Self { media: 1, ..Self::default() }
    }

    /// Its share of a tool result's size.
    pub(crate) fn in_result(self) -> Self {
        Self { result_bytes: self.text_bytes, media: self.media, ..Self::default() }
    }
}

impl std::ops::AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.text_bytes += other.text_bytes;
        self.result_bytes += other.result_bytes;
        self.call_bytes += other.call_bytes;
        self.calls += other.calls;
        self.media += other.media;
    }
}

impl std::ops::SubAssign for Size {
    fn sub_assign(&mut self, other: Self) {
        self.text_bytes -= other.text_bytes;
        self.result_bytes -= other.result_bytes;
        self.call_bytes -= other.call_bytes;
        self.calls -= other.calls;
        self.media -= other.media;
    }
}

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), |mut total, size| {
            total += size;
            total
        })
    }
}
