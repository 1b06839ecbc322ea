//! Text types that are checked once, when they are made.

/// Methods of such a type: it is parsed from a text that `check` accepts, and written as that text.
macro_rules! checked_text {
    ($checked:ident or $bad:ident) => {
        impl $checked {
            /// Its text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $checked {
            type Err = $bad;

            fn from_str(text: &str) -> Result<Self, $bad> {
                match Self::check(text) {
                    Ok(()) => Ok(Self(text.to_owned())),
                    Err(why) => Err($bad { text: text.to_owned(), why }),
                }
            }
        }

        impl TryFrom<String> for $checked {
            type Error = $bad;

            fn try_from(text: String) -> Result<Self, $bad> {
                text.parse()
            }
        }

        impl From<$checked> for String {
            fn from(checked: $checked) -> Self {
                checked.0
            }
        }

        impl std::fmt::Display for $checked {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

pub(crate) use checked_text;
