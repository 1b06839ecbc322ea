//! "Too long", in the words of many servers.
//!
//! No two servers say it alike, and the numbers matter: how much is too much decides how much must go. The wordings
//! below are those of the Messages API, OpenAI, llama.cpp, Ollama, vLLM, SGLang, LM Studio, TGI, Mistral, xAI and
//! Gemini, as their sources or their answers have them. A wording that is missing costs a refusal where there could be
//! an overflow; one that is too broad would cost a compaction. So each is as narrow as it can be.

/// Phrases of messages about a request that is too long.
const WORDS: [&str; 13] = [
    "prompt is too long",
    "prompt too long",
    "exceed context limit",
    "input is too long",
    "context length",
    "context size",
    "context window",
    "maximum model length",
    "maximum prompt length",
    "exceed the configured limit",
    "exceeds the maximum number of tokens",
    "`inputs` tokens + `max_new_tokens` must be",
    "reduce the length of the messages",
];

/// Phrases right before the number of tokens sent. If several occur, the first in this list counts.
const BEFORE_TOKENS: [&str; 14] = [
    "your messages resulted in ",
    "you requested a total of ",
    "you requested about ",
    "you requested ",
    "you passed ",
    "your request has ",
    "the request contains ",
    "request (",
    "prompt (length ",
    "prompt contains ",
    "requested tokens (",
    "token count (",
    "given: ",
    "the input (",
];

/// Phrases right before the number of tokens allowed.
const BEFORE_LIMIT: [&str; 13] = [
    "context length is only ",
    "context length is ",
    "context length of only ",
    "context length of ",
    "context length (",
    "context size (",
    "context window of ",
    "model length of ",
    "prompt length is ",
    "configured limit of ",
    "tokens allowed (",
    "must be <= ",
    "too large for model with ",
];

/// True if a message says that the request is too long.
pub(crate) fn is_meant(message: &str) -> bool {
    let message = message.to_lowercase();
    WORDS.iter().any(|words| message.contains(words))
}

/// Tokens sent and tokens allowed, as far as the message names them.
pub(crate) fn numbers(message: &str) -> (Option<u64>, Option<u64>) {
    let message = message.to_lowercase();
    let behind = |phrases: &[&str]| phrases.iter().find_map(|words| number(message.split_once(words)?.1));
    let compared = compared(&message);
    let tokens = behind(&BEFORE_TOKENS).or(compared.0);
    // "N tokens (M in the messages, K in the completion)": K was never sent.
    let completion = message.split_once(" in the completion").and_then(|(before, _)| last_number(before));
    let tokens = tokens.map(|tokens| tokens - completion.filter(|completion| *completion < tokens).unwrap_or(0));
    (tokens, behind(&BEFORE_LIMIT).or(compared.1))
}

/// `… : N tokens > M maximum`, or `… : N + K > M` where K is the output asked for: N and M.
fn compared(message: &str) -> (Option<u64>, Option<u64>) {
    let Some((before, after)) = message.split_once('>') else { return (None, None) };
    let before = before.rsplit(':').next().unwrap_or(before);
    let first = |text: &str| number(text.trim_start_matches(|c: char| !c.is_ascii_digit()));
    (first(before), first(after))
}

/// The number that a text begins with.
fn number(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ',' && c != '_').unwrap_or(text.len());
    text[..end].replace([',', '_'], "").parse().ok()
}

/// The number that a text ends with.
fn last_number(text: &str) -> Option<u64> {
    text.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_is_understood() {
        for (message, tokens, limit) in [
            ("prompt is too long: 208310 tokens > 200000 maximum", Some(208_310), Some(200_000)),
            ("prompt is too long: 1,208,310 tokens > 1,000,000 maximum", Some(1_208_310), Some(1_000_000)),
            (
                "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
                Some(190_000),
                Some(200_000),
            ),
            ("prompt is too long", None, None),
            ("prompt is too long: 99999999999999999999999 tokens > many", None, None),
            // OpenAI
            (
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130500 tokens (130000 in the messages, 500 in the functions). Please reduce the length of the messages or functions.",
                Some(130_500),
                Some(128_000),
            ),
            (
                "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens. Please reduce the length of the messages.",
                Some(300_000),
                Some(272_000),
            ),
            ("Your input exceeds the context window of this model. Please adjust your input.", None, None),
            // vLLM, old and new
            (
                "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 in the messages, 500 in the completion). Please reduce the length of the messages or completion.",
                Some(4_500),
                Some(4_096),
            ),
            (
                "'max_tokens' or 'max_completion_tokens' is too large: 2048. This model's maximum context length is 4096 tokens and your request has 3000 input tokens (2048 > 4096 - 3000).",
                Some(3_000),
                Some(4_096),
            ),
            (
                "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that …",
                Some(5_000),
                Some(4_096),
            ),
            (
                "You passed 4097 input tokens and requested 16 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 4080 tokens.",
                Some(4_097),
                Some(4_096),
            ),
            // llama.cpp, new and old, and its Python binding
            (
                "request (6031 tokens) exceeds the available context size (4096 tokens), try increasing it",
                Some(6_031),
                Some(4_096),
            ),
            ("the request exceeds the available context size. try increasing the context size", None, None),
            ("Requested tokens (5000) exceed context window of 4096", Some(5_000), Some(4_096)),
            // Ollama
            ("prompt too long; exceeded max context length by 12 tokens", None, None),
            ("input length exceeds maximum context length", None, None),
            // SGLang
            (
                "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
                Some(5_000),
                Some(4_096),
            ),
            // LM Studio
            ("The model is loaded with context length of only 4096 tokens, which is not enough", None, Some(4_096)),
            // TGI
            (
                "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`",
                Some(5_000),
                Some(4_096),
            ),
            // OpenRouter, Mistral, xAI, Gemini
            (
                "This endpoint's maximum context length is 163840 tokens. However, you requested about 170000 tokens (169000 of text input, 1000 in the output).",
                Some(170_000),
                Some(163_840),
            ),
            (
                "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
                Some(40_000),
                Some(32_768),
            ),
            (
                "This model's maximum prompt length is 131072 but the request contains 137000 tokens.",
                Some(137_000),
                Some(131_072),
            ),
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_200_000),
                Some(1_048_576),
            ),
        ] {
            assert!(is_meant(message), "{message}");
            assert_eq!(numbers(message), (tokens, limit), "{message}");
        }
    }

    #[test]
    fn other_refusals_are_not_meant() {
        for message in ["messages.0: nonsense", "max_tokens is too large: 99999", "model 'x' not found", ""] {
            assert!(!is_meant(message), "{message}");
        }
    }
}
