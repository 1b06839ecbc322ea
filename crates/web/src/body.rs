//! The bytes of a page, as text: unpacked within a limit and decoded by the page's encoding.

use std::io::Read;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use flate2::read::{MultiGzDecoder, ZlibDecoder};

/// The beginning of a page in which it may name its encoding, as browsers look there.
const ENCODING_NAMED_IN: usize = 1_024;

/// The packing of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    None,
    Gzip,
    Deflate,
}

impl Packing {
    /// By the header; none for one that is not known.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Self::None),
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            _ => None,
        }
    }

    /// The bytes unpacked, at most this many, and whether there were more. What is broken ends where it breaks.
    pub(crate) fn unpack(self, bytes: Vec<u8>, most: usize) -> (Vec<u8>, bool) {
        let read = |from: &mut dyn Read| {
            let (mut out, limit) = (Vec::new(), u64::try_from(most).unwrap_or(u64::MAX));
            let _ = from.take(limit.saturating_add(1)).read_to_end(&mut out);
            out
        };
        let mut out = match self {
            Self::None => bytes,
            Self::Gzip => read(&mut MultiGzDecoder::new(bytes.as_slice())),
            Self::Deflate => read(&mut ZlibDecoder::new(bytes.as_slice())),
        };
        let is_cut = out.len() > most;
        out.truncate(most);
        (out, is_cut)
    }
}

/// The text of a page: by its byte order mark, by the header's encoding, by its own word, as UTF-8, or as old pages are.
/// Control characters are left out.
pub(crate) fn decoded(bytes: &[u8], charset: Option<&str>) -> String {
    let named = charset.and_then(|label| Encoding::for_label(label.as_bytes()));
    let usual = || if std::str::from_utf8(bytes).is_ok() { UTF_8 } else { WINDOWS_1252 };
    let encoding = named.or_else(|| named_in(bytes)).unwrap_or_else(usual);
    let (text, ..) = encoding.decode(bytes);
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// The encoding that the beginning of a page names: `charset=…` in a `meta`, or `encoding="…"` of XML.
fn named_in(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(ENCODING_NAMED_IN)]).to_ascii_lowercase();
    ["charset=", "encoding="].iter().find_map(|key| {
        let rest = head.split_once(key)?.1.trim_start_matches(['"', '\'', ' ']);
        let label = rest.split(|c: char| !c.is_ascii_alphanumeric() && !"-_.:".contains(c)).next()?;
        // What could be read this far is no UTF-16, whatever it says.
        Encoding::for_label(label.as_bytes()).map(|found| if found.is_ascii_compatible() { found } else { UTF_8 })
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;

    /// WEB-1: a bomb is cut where the limit is, and what is broken ends where it breaks.
    #[test]
    fn a_bomb_is_cut_at_the_limit() {
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        for _ in 0..20 {
            bomb.write_all(&[b'a'; 1_000_000]).unwrap();
        }
        let bomb = bomb.finish().unwrap();
        assert!(bomb.len() < 40_000);
        let (text, is_cut) = Packing::Gzip.unpack(bomb.clone(), 1_000);
        assert_eq!((text.len(), is_cut), (1_000, true));
        let (text, is_cut) = Packing::Gzip.unpack(bomb[..bomb.len() / 1_000].to_vec(), 1_000_000_000);
        assert!(!is_cut && text.len() < 1_000_000);
        let mut small = ZlibEncoder::new(Vec::new(), Compression::fast());
        small.write_all(b"hello").unwrap();
        assert_eq!(Packing::Deflate.unpack(small.finish().unwrap(), 5), (b"hello".to_vec(), false));
        assert_eq!(Packing::None.unpack(b"hello".to_vec(), 4), (b"hell".to_vec(), true));
        assert_eq!((Packing::named("br"), Packing::named("gzip, gzip")), (None, None));
    }

    /// WEB-1: pages in other encodings are read, and nonsense about them harms nothing.
    #[test]
    fn odd_encodings_are_read() {
        for (bytes, charset, expected) in [
            (&b"na\xc3\xafve"[..], None, "naïve"),
            (b"na\xefve", None, "naïve"),
            (b"\xff\xfeh\x00i\x00", None, "hi"),
            (b"\xef\xbb\xbfhi", Some("iso-8859-1"), "hi"),
            (b"\x82\xa0", Some("Shift_JIS"), "あ"),
            (b"<meta charset='koi8-r'>\xd4", None, "<meta charset='koi8-r'>т"),
            (b"<meta charset=utf-16>hi", None, "<meta charset=utf-16>hi"),
            (b"hi", Some("utf-7"), "hi"),
            (b"h\x00\x1b[2Ji\r\n", None, "h[2Ji\n"),
        ] {
            assert_eq!(decoded(bytes, charset), expected);
        }
    }

    proptest! {
        /// WEB-1: any bytes are some text.
        #[test]
        fn any_bytes_are_text(bytes in prop::collection::vec(any::<u8>(), 0..300), charset in "[a-z0-9-]{0,12}") {
            let text = decoded(&bytes, Some(&charset));
            let has_controls = text.contains(['\0', '\u{1b}']);
            prop_assert!(!has_controls);
            for packing in [Packing::Gzip, Packing::Deflate, Packing::None] {
                prop_assert!(packing.unpack(bytes.clone(), 50).0.len() <= 50);
            }
        }
    }
}
